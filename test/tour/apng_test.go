package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image/png"
	"testing"
	"time"
)

// A program that does not support animations reads the first picture, and each later frame has the pixels of its
// picture.
func TestEncode_KeepsEveryFrame(t *testing.T) {
	first, last := terminalPictures("desk\nPASS  1 step\n")
	var data bytes.Buffer
	if err := encode(&data, []frame{{first, time.Second}, {last, 2 * time.Second}}); err != nil {
		t.Fatal(err)
	}
	got, err := png.Decode(bytes.NewReader(data.Bytes()))
	if err != nil || got.Bounds() != first.Bounds() {
		t.Fatalf("the first picture: got %v (error %v), want %v", got, err, first.Bounds())
	}
	var second bytes.Buffer // the file as a PNG of the second frame
	second.WriteString(signature)
	kinds := ""
	for rest := data.Bytes()[len(signature):]; len(rest) > 0; {
		n := binary.BigEndian.Uint32(rest)
		kind, body := string(rest[4:8]), rest[8:8+n]
		if sum := binary.BigEndian.Uint32(rest[8+n:]); sum != crc32.ChecksumIEEE(rest[4:8+n]) {
			t.Errorf("chunk %s has a wrong checksum", kind)
		}
		kinds += kind + " "
		switch kind {
		case "IHDR", "IEND":
			chunk(&second, kind, body)
		case "fdAT":
			chunk(&second, "IDAT", body[4:])
		}
		rest = rest[chunkExtra+n:]
	}
	if want := "IHDR acTL fcTL IDAT fcTL fdAT IEND "; kinds != want {
		t.Errorf("got the chunks %s, want %s", kinds, want)
	}
	again, err := png.Decode(&second)
	if err != nil {
		t.Fatal(err)
	}
	for y := range last.Rect.Dy() {
		for x := range last.Rect.Dx() {
			r, g, b, _ := again.At(x, y).RGBA()
			if r2, g2, b2, _ := last.At(x, y).RGBA(); r != r2 || g != g2 || b != b2 {
				t.Fatalf("pixel %d,%d of the second frame differs", x, y)
			}
		}
	}
}
