// What our programs for ns-3 share: the plan that Chappe's side wrote, and the counts that both sides print.

#pragma once

#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// A network with its load, as lines of `key values` (crates/sim/examples/peer.rs writes them).
struct Plan {
    // Metres.
    std::vector<std::pair<double, double>> places;
    // When each node's first frame is due, in nanoseconds; only for loads that are not saturated.
    std::vector<std::int64_t> phases;
    // Every other line: a key and its number.
    std::map<std::string, double> values;

    explicit Plan(const std::string& path) {
        std::ifstream file(path);
        if (!file) throw std::runtime_error("cannot read " + path);
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string key;
            words >> key;
            if (key == "place") {
                double x = 0, y = 0;
                words >> x >> y;
                places.emplace_back(x, y);
            } else if (key == "phase") {
                std::int64_t at = 0;
                words >> at;
                phases.push_back(at);
            } else {
                double value = 0;
                words >> value;
                values[key] = value;
            }
            if (words.fail()) throw std::runtime_error("no number in: " + line);
        }
    }

    double operator[](const std::string& key) const {
        auto found = values.find(key);
        if (found == values.end()) throw std::runtime_error("the plan lacks " + key);
        return found->second;
    }
};

// What is counted, from the moment that counting begins.
struct Counts {
    bool counting = false;
    // Data frames that each node put on the air, and those that it received.
    std::vector<std::uint64_t> sent, received;
    // The length of a data frame and of an acknowledgement on the air, in microseconds.
    double data_us = 0, ack_us = 0;
    std::clock_t begun = 0;

    explicit Counts(std::size_t nodes) : sent(nodes), received(nodes) {}

    void begin() {
        counting = true;
        begun = std::clock();
    }

    void print() const {
        std::cout << "cpu " << double(std::clock() - begun) / CLOCKS_PER_SEC << "\n";
        std::cout << "data_us " << data_us << "\nack_us " << ack_us << "\n";
        for (std::size_t i = 0; i < sent.size(); i++)
            std::cout << "node " << sent[i] << " " << received[i] << "\n";
    }
};
