// 802.11b, 802.11a's OFDM or 802.11n's HT, in ns-3, on a plan that Chappe wrote. `broadcast`: saturated broadcasters over two rays with Rayleigh fading;
// `cell`: saturated stations around one sink, acknowledged.
//
//     dot11 broadcast|cell|broadcast-ofdm|cell-ofdm|broadcast-ht|cell-ht|cell-ampdu PLAN SEED

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

#include "plan.h"

using namespace ns3;

namespace {

// An EtherType for experiments (IEEE 802, "Local Experimental 1").
constexpr std::uint16_t kProtocol = 0x88b5;
// Frames in each saturated queue, those in flight included, and how often it is filled: no station sends so many in that time, be it in
// A-MPDUs of 16.
constexpr std::uint32_t kBacklog = 80;
const Time kRefill = MilliSeconds(20);

struct Network {
    NetDeviceContainer devices;
    Counts counts;
    std::size_t senders;
    std::uint32_t octets;
    Address to;
    bool cell;
    // HT needs QoS, whose best effort has a queue of its own.
    AcIndex category = AC_BE_NQOS;

    Network(std::size_t nodes) : counts(nodes) {}

    static Ptr<WifiNetDevice> wifi(Ptr<NetDevice> device) { return DynamicCast<WifiNetDevice>(device); }

    void refill() {
        for (std::size_t i = 0; i < senders; i++) {
            auto queue = wifi(devices.Get(i))->GetMac()->GetTxopQueue(category);
            while (queue->GetNPackets() < kBacklog) {
                std::vector<std::uint8_t> octet(octets, 0);
                octet[0] = static_cast<std::uint8_t>(i);
                devices.Get(i)->Send(Create<Packet>(octet.data(), octets), to, kProtocol);
            }
        }
        Simulator::Schedule(kRefill, &Network::refill, this);
    }

    void transmitted(std::size_t node, Ptr<const Packet> packet, double) {
        if (packet->GetSize() > octets && counts.counting) counts.sent[node]++;
    }

    bool received(std::size_t node, Ptr<NetDevice>, Ptr<const Packet> packet, std::uint16_t, const Address&) {
        if (!counts.counting) return true;
        std::uint8_t sender = 0;
        packet->CopyData(&sender, 1);
        counts.received[cell ? sender : node]++;
        return true;
    }

    void state(Time, Time duration, WifiPhyState now) {
        if (now != WifiPhyState::TX) return;
        double us = duration.GetNanoSeconds() / 1e3;
        if (us > counts.data_us) counts.data_us = us;
        if (counts.ack_us == 0 || us < counts.ack_us) counts.ack_us = us;
    }
};

}  // namespace

int main(int count, char** words) {
    if (count != 4) {
        std::cerr << "usage: dot11 broadcast|cell|broadcast-ofdm|cell-ofdm|broadcast-ht|cell-ht PLAN SEED\n";
        return 2;
    }
    bool cell = std::string(words[1]).rfind("cell", 0) == 0;
    Plan plan(words[2]);
    RngSeedManager::SetSeed(std::stoul(words[3]));
    Network network(plan.places.size());
    network.cell = cell;
    network.senders = static_cast<std::size_t>(plan["senders"]);
    network.octets = static_cast<std::uint32_t>(plan["octets"]);

    NodeContainer nodes;
    nodes.Create(plan.places.size());
    auto places = CreateObject<ListPositionAllocator>();
    for (auto [x, y] : plan.places) places->Add(Vector(x, y, 0));
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);

    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    YansWifiPhyHelper phy;
    if (cell) {
        channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel");
    } else {
        channel.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel", "Frequency", DoubleValue(plan["hertz"]),
                                   "HeightAboveZ", DoubleValue(plan["height"]));
        // A shape of one is Rayleigh's fading.
        channel.AddPropagationLoss("ns3::NakagamiPropagationLossModel", "m0", DoubleValue(1), "m1", DoubleValue(1), "m2",
                                   DoubleValue(1));
    }
    phy.SetChannel(channel.Create());
    // For OFDM; DSSS has its own. The default since 3.33, tables of a receiver with soft decisions, needs some 2.5 dB less.
    phy.SetErrorRateModel("ns3::NistErrorRateModel");
    phy.Set("TxPowerStart", DoubleValue(plan["power"]));
    phy.Set("TxPowerEnd", DoubleValue(plan["power"]));
    phy.Set("CcaEdThreshold", DoubleValue(plan["carrier_sense"]));
    // ns-3 has a second threshold, for energy beside 802.11 frames. Its default of -82 dBm ends a busy period that began above
    // it as soon as the sum falls under it, although the first threshold is lower.
    phy.Set("CcaSensitivity", DoubleValue(plan["cca_sensitivity"]));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "Threshold", DoubleValue(plan["lock_sinr"]),
                                  "MinimumRssi", DoubleValue(plan["lock_power"]));
    WifiHelper wifi;
    // The rate of OFDM in Mbit/s, if the plan has one.
    auto ofdm = plan.values.find("ofdm");
    bool has_ofdm = ofdm != plan.values.end();
    // The MCS of HT, if the plan has one.
    auto ht = plan.values.find("ht");
    bool has_ht = ht != plan.values.end();
    std::string rate = has_ht ? "HtMcs" + std::to_string(static_cast<int>(ht->second)) : has_ofdm ? "OfdmRate" + std::to_string(static_cast<int>(ofdm->second)) + "Mbps" : "DsssRate2Mbps";
    // At 5 GHz no silence follows a frame, as in 802.11a.
    if (has_ht) phy.Set("ChannelSettings", StringValue("{36, 20, BAND_5GHZ, 0}"));
    wifi.SetStandard(has_ht ? WIFI_STANDARD_80211n : has_ofdm ? WIFI_STANDARD_80211a : WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue(rate), "ControlMode",
                                 StringValue(has_ht ? "OfdmRate24Mbps" : has_ofdm ? rate : "DsssRate1Mbps"), "NonUnicastMode", StringValue(rate));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(has_ht));
    if (has_ht) {
        network.category = AC_BE;
        // Octets of the longest A-MPDU; zero sends frame by frame.
        mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(true), "BE_MaxAmpduSize",
                    UintegerValue(static_cast<std::uint32_t>(plan["ampdu"])), "BE_MaxAmsduSize",
                    UintegerValue(0));
    }
    network.devices = wifi.Install(phy, mac, nodes);
    for (std::size_t i = 0; i < plan.places.size(); i++) {
        auto device = Network::wifi(network.devices.Get(i));
        device->GetMac()->GetTxopQueue(network.category)->SetMaxDelay(Seconds(1000));
        device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin",
                                                     MakeCallback(&Network::transmitted, &network).Bind(i));
        device->SetReceiveCallback(MakeCallback(&Network::received, &network).Bind(i));
    }
    Network::wifi(network.devices.Get(0))
        ->GetPhy()
        ->GetState()
        ->TraceConnectWithoutContext("State", MakeCallback(&Network::state, &network));
    if (cell) {
        auto sink = Network::wifi(network.devices.Get(plan.places.size() - 1));
        // The sink's acknowledgements are the shortest frames.
        sink->GetPhy()->GetState()->TraceConnectWithoutContext("State", MakeCallback(&Network::state, &network));
        network.to = sink->GetAddress();
    } else {
        network.to = Mac48Address::GetBroadcast();
    }
    Simulator::Schedule(Seconds(0), &Network::refill, &network);
    Simulator::Schedule(Seconds(plan["warm"]), &Counts::begin, &network.counts);
    Simulator::Stop(Seconds(plan["warm"] + plan["seconds"]));
    Simulator::Run();
    network.counts.print();
    Simulator::Destroy();
}
