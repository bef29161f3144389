package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"time"
)

// frame is one picture of an animation, shown for a time of at most 65 s.
type frame struct {
	img  image.Image
	time time.Duration
}

const (
	signature  = "\x89PNG\r\n\x1a\n"
	chunkExtra = 12 // length, type and checksum
)

// encode writes pictures of one size as an APNG that loops (PNG, third edition, section 11.3.6). Programs that do not
// support animations show the first picture.
func encode(w io.Writer, frames []frame) error {
	out := bytes.NewBufferString(signature)
	var header []byte
	sequence := uint32(0)
	next := func() []byte {
		sequence++
		return binary.BigEndian.AppendUint32(nil, sequence-1)
	}
	for i, f := range frames {
		head, data, err := partsOf(f.img)
		if err != nil {
			return err
		}
		if i > 0 && !bytes.Equal(head, header) {
			return fmt.Errorf("picture %d has another size or kind of pixels than the first", i)
		}
		if i == 0 {
			header = head
			chunk(out, "IHDR", head)
			control := binary.BigEndian.AppendUint32(nil, uint32(len(frames)))
			chunk(out, "acTL", binary.BigEndian.AppendUint32(control, 0)) // loop forever
		}
		size := f.img.Bounds().Size()
		control := binary.BigEndian.AppendUint32(next(), uint32(size.X))
		control = binary.BigEndian.AppendUint32(control, uint32(size.Y))
		control = append(control, make([]byte, 8)...) // at 0, 0
		control = binary.BigEndian.AppendUint16(control, uint16(f.time.Milliseconds()))
		control = binary.BigEndian.AppendUint16(control, 1000)
		chunk(out, "fcTL", append(control, 0, 0)) // keep the frame, and replace the previous one
		if i == 0 {
			chunk(out, "IDAT", data)
		} else {
			chunk(out, "fdAT", append(next(), data...))
		}
	}
	chunk(out, "IEND", nil)
	_, err := out.WriteTo(w)
	return err
}

// partsOf returns the header and the compressed pixels of a PNG.
func partsOf(img image.Image) (head, data []byte, err error) {
	var file bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&file, img); err != nil {
		return nil, nil, fmt.Errorf("encode a picture: %w", err)
	}
	for rest := file.Bytes()[len(signature):]; len(rest) >= chunkExtra; {
		n := binary.BigEndian.Uint32(rest)
		body := rest[8 : 8+n]
		switch string(rest[4:8]) {
		case "IHDR":
			head = body
		case "IDAT":
			data = append(data, body...)
		case "PLTE":
			return nil, nil, errors.New("a picture with a palette cannot be a frame")
		}
		rest = rest[chunkExtra+n:]
	}
	return head, data, nil
}

func chunk(out *bytes.Buffer, kind string, body []byte) {
	data := append([]byte(kind), body...)
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(body))))
	out.Write(data)
	out.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data)))
}
