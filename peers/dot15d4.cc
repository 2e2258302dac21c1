// 802.15.4 in ns-3, on a plan that Chappe wrote: every node broadcasts one frame a period with unslotted CSMA-CA.
//
//     dot15d4 PLAN SEED

#include "ns3/core-module.h"
#include "ns3/lr-wpan-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/single-model-spectrum-channel.h"

#include "plan.h"

// Since ns-3.42 everything of 802.15.4 stands in a namespace of its own.
namespace ns3::lrwpan {}

using namespace ns3;
using namespace ns3::lrwpan;

namespace {

constexpr std::uint16_t kPan = 0xcafe;

struct Network {
    std::vector<Ptr<LrWpanNetDevice>> devices;
    Counts counts;
    std::uint32_t octets;
    Time period;

    Network(std::size_t nodes) : counts(nodes) {}

    void send(std::size_t node) {
        McpsDataRequestParams request;
        request.m_srcAddrMode = SHORT_ADDR;
        request.m_dstAddrMode = SHORT_ADDR;
        request.m_dstPanId = kPan;
        request.m_dstAddr = Mac16Address("ff:ff");
        devices[node]->GetMac()->McpsDataRequest(request, Create<Packet>(octets));
        Simulator::Schedule(period, &Network::send, this, node);
    }

    void transmitted(std::size_t node, Ptr<const Packet> packet) {
        if (counts.counting) counts.sent[node]++;
        // Six octets of preamble, delimiter and length come before the packet; 32 us an octet.
        counts.data_us = 32.0 * (packet->GetSize() + 6);
    }

    void received(std::size_t node, McpsDataIndicationParams, Ptr<Packet>) {
        if (counts.counting) counts.received[node]++;
    }
};

}  // namespace

int main(int count, char** words) {
    if (count != 3) {
        std::cerr << "usage: dot15d4 PLAN SEED\n";
        return 2;
    }
    Plan plan(words[1]);
    RngSeedManager::SetSeed(std::stoul(words[2]));
    Network network(plan.places.size());
    network.octets = static_cast<std::uint32_t>(plan["octets"]);
    network.period = Seconds(plan["period"]);

    auto channel = CreateObject<SingleModelSpectrumChannel>();
    channel->AddPropagationLossModel(CreateObject<LogDistancePropagationLossModel>());
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    for (std::size_t i = 0; i < plan.places.size(); i++) {
        auto node = CreateObject<Node>();
        auto device = CreateObject<LrWpanNetDevice>();
        device->SetChannel(channel);
        node->AddDevice(device);
        auto place = CreateObject<ConstantPositionMobilityModel>();
        place->SetPosition(Vector(plan.places[i].first, plan.places[i].second, 0));
        node->AggregateObject(place);
        device->GetPhy()->SetMobility(place);
        device->GetMac()->SetPanId(kPan);
        std::uint8_t address[] = {static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)};
        Mac16Address number;
        number.CopyFrom(address);
        device->GetMac()->SetShortAddress(number);
        device->GetMac()->SetMcpsDataIndicationCallback(MakeCallback(&Network::received, &network).Bind(i));
        device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin",
                                                     MakeCallback(&Network::transmitted, &network).Bind(i));
        network.devices.push_back(device);
        Simulator::ScheduleWithContext(node->GetId(), NanoSeconds(plan.phases.at(i)), &Network::send, &network, i);
    }
    Simulator::Schedule(Seconds(plan["warm"]), &Counts::begin, &network.counts);
    Simulator::Stop(Seconds(plan["warm"] + plan["seconds"]));
    Simulator::Run();
    network.counts.print();
    Simulator::Destroy();
}
