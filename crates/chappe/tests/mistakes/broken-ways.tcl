$node_(0) set X_ 0
$node_(0) set Y_ 0
$ns_ at 3.0 "$node_(0) setdest 20 30 fast"
