// Package lc3 decodes the microphone sound of glasses. It implements LC3, the Low Complexity Communication Codec of
// Bluetooth LE Audio, at 16 kHz, mono, with frames of 10 ms and 20 bytes (16 kbit/s). It supports no other
// configuration and is independent of transports and packets.
//
// The source is the Bluetooth SIG's specification Low Complexity Communication Codec, version 1.0 (the decoder and
// Appendix B). Each decoding stage has its own file, in this order:
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
// The tables are from Google's liblc3 (Apache License 2.0; the table files contain the notice). Where the
// specification leaves a choice, for example when a frame counts as corrupt, this decoder follows liblc3. Tests
// compare the two decoders: samples differ by at most 1, because liblc3 uses 32-bit floats and this package 64-bit
// floats.
//
// Decoding produces the same samples on every processor. Go permits compilers to compute x*y + z with a single
// rounding, and some do. An explicit conversion of the product prevents this, so addProduct converts every product
// before adding it. cosine and exp2 replace functions of package math whose last bit depends on the processor.
package lc3
