// Package lc3 decodes the microphone's sound of glasses: LC3, the Low Complexity Communication Codec of Bluetooth LE
// Audio, at 16 kHz, one channel, frames of 10 ms and 20 bytes (16 kbit/s). It knows no other configuration, and
// neither transports nor packets.
//
// The source is the Bluetooth SIG's Low Complexity Communication Codec, version 1.0, decoder and Appendix B. Each
// stage has a file, in the order of decoding:
//
//   - bitreader.go: plain bits and the arithmetic decoder
//   - frame.go: side information
//   - spectrum.go: arithmetic decoding of the spectrum, residual bits, noise filling, global gain
//   - tns.go: temporal noise shaping (TNS)
//   - sns.go: spectral noise shaping (SNS)
//   - mdct.go: inverse low delay MDCT
//   - postfilter.go: long term postfilter (LTPF)
//   - decoder.go: all of them in order, and packet loss concealment (Appendix B)
//
// The tables are those of Google's liblc3 (Apache License 2.0, the notice is in their files). Where a decoder is free
// to choose, for example in what it takes for a corrupt frame, this one does as liblc3 does. Tests compare it with
// liblc3's decoder: samples differ by at most 1, because liblc3 calculates with 32 bits and this package with 64.
//
// The same frames become the same samples on every processor. The language permits a compiler to compute x*y + z with
// a single rounding, and compilers for some processors do. An explicit conversion of the product forbids it, so every
// product that is added to something is converted (addProduct). Functions of package math whose last bit depends on
// the processor are not used: cosine and exp2 replace them.
package lc3
