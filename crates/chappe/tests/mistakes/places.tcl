$node_(0) set X_ 0
$node_(0) set Y_ 0
$node_(1) set X_ 50
$node_(1) set Y_ 0
