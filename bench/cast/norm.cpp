// One file by NORM (RFC 5740) with the Naval Research Laboratory's library: what compare.sh measures Chappe against.
//
//   g++ -O2 -o norm norm.cpp -lnorm
//   norm receive INTERFACE ID FOLDER
//   norm send INTERFACE BITS_PER_SECOND FILE RECEIVERS [AUTO_PARITY]
//
// Receivers have the numbers 2, 3, ...; the sender is 1 and names them, so that a watermark tells when all have all.
// Blocks of 64 segments of 1400 octets with 32 of parity at most, a first guess of 20 ms for the round trip; the rest
// is the library's default. The sender prints the seconds from the start to the last acknowledgement.
#include <normApi.h>
#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

static const char* GROUP = "224.1.2.3";
static const UINT16 PORT = 6003;

static NormSessionHandle open_session(NormInstanceHandle instance, const char* interface, NormNodeId id) {
  NormSessionHandle session = NormCreateSession(instance, GROUP, PORT, id);
  if (session == NORM_SESSION_INVALID) { fprintf(stderr, "no session\n"); exit(1); }
  NormSetMulticastInterface(session, interface);
  NormSetTTL(session, 1);
  NormSetRxPortReuse(session, true);
  return session;
}

static int receive(NormInstanceHandle instance, char** words) {
  std::string folder = words[4];
  NormSetCacheDirectory(instance, (folder + "/").c_str());
  NormSessionHandle session = open_session(instance, words[2], (NormNodeId)atoi(words[3]));
  NormSetRxCacheLimit(session, 4096);
  NormStartReceiver(session, 32u << 20);
  NormSetRxSocketBuffer(session, 4u << 20);
  NormEvent event;
  while (NormGetNextEvent(instance, &event)) {
    if (event.type == NORM_RX_OBJECT_COMPLETED) {
      NormFileRename(event.object, (folder + "/file.bin").c_str());
      printf("complete\n");
      fflush(stdout);
    }
  }
  return 0;
}

static int send(NormInstanceHandle instance, int count, char** words) {
  NormSessionHandle session = open_session(instance, words[2], 1);
  int receivers = atoi(words[5]);
  NormSetTxRate(session, atof(words[3]));
  NormSetGrttEstimate(session, 0.02);
  NormSetGroupSize(session, receivers);
  if (count > 6) NormSetAutoParity(session, (unsigned char)atoi(words[6]));
  for (int id = 2; id < receivers + 2; id++) NormAddAckingNode(session, (NormNodeId)id);
  // The instance number tells one run from another.
  auto begun = std::chrono::steady_clock::now();
  NormSessionId number = (NormSessionId)(begun.time_since_epoch().count() & 0xffff);
  if (!NormStartSender(session, number, 16u << 20, 1400, 64, 32)) { fprintf(stderr, "no sender\n"); return 1; }
  NormSetTxSocketBuffer(session, 1u << 20);
  NormObjectHandle object = NormFileEnqueue(session, words[4], "file.bin", 8);
  if (object == NORM_OBJECT_INVALID) { fprintf(stderr, "cannot send %s\n", words[4]); return 1; }
  NormSetWatermark(session, object, true);
  NormEvent event;
  while (NormGetNextEvent(instance, &event)) {
    if (event.type != NORM_TX_WATERMARK_COMPLETED) continue;
    if (NormGetAckingStatus(session, NORM_NODE_ANY) == NORM_ACK_SUCCESS) break;
    NormResetWatermark(session);
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  printf("STATS %.3f\n", took.count());
  return 0;
}

int main(int count, char** words) {
  NormInstanceHandle instance = NormCreateInstance();
  if (count == 5 && !strcmp(words[1], "receive")) return receive(instance, words);
  if (count >= 6 && !strcmp(words[1], "send")) return send(instance, count, words);
  fprintf(stderr, "norm receive INTERFACE ID FOLDER | norm send INTERFACE BITS_PER_SECOND FILE RECEIVERS [AUTO_PARITY]\n");
  return 2;
}
