package media_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/service-dev/service/glasses/media"
)

// noise returns a picture that JPEG compresses particularly badly.
func noise(w, h int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32())
	}
	var b bytes.Buffer
	_ = jpeg.Encode(&b, img, &jpeg.Options{Quality: 100})
	return b.Bytes()
}

func TestJPEG(t *testing.T) {
	small := media.TestPicture(160, 120, 3)
	if p, err := media.JPEG(small, 160); err != nil || !bytes.Equal(p.Bytes, small) || p.Width != 160 ||
		p.Height != 120 {
		t.Errorf("a picture that fits was changed: %v", err)
	}
	if p, err := media.JPEG(small, 80); err != nil || p.Width != 80 || p.Height != 60 {
		t.Errorf("scaled to %d by %d, error %v; want 80 by 60", p.Width, p.Height, err)
	}
	if p, err := media.JPEG(noise(1200, 900), 1200); err != nil || len(p.Bytes) > media.MaxBytes {
		t.Errorf("a picture of noise: %d bytes, error %v; want at most MaxBytes", len(p.Bytes), err)
	}
	img := image.NewNRGBA(image.Rect(0, 0, 10, 4000))
	img.Set(0, 0, color.White)
	var tall bytes.Buffer
	_ = png.Encode(&tall, img)
	if p, err := media.JPEG(tall.Bytes(), 1); err != nil || p.Width != 1 || p.Height != 400 {
		t.Errorf("a tall picture: %d by %d, error %v; want 1 by 400", p.Width, p.Height, err)
	}
	bomb := bytes.Clone(tall.Bytes())
	binary.BigEndian.PutUint32(bomb[16:], 1<<30) // the width, which is read before the checksum
	for name, data := range map[string][]byte{"empty": nil, "GIF": []byte("GIF89a\x01\x00\x01\x00"),
		"cut": small[:200], "bomb": bomb} {
		if _, err := media.JPEG(data, 64); err == nil {
			t.Errorf("JPEG accepted the case %s", name)
		}
	}
}

func TestClip(t *testing.T) {
	var clip []byte
	for n := range 20 {
		clip = append(clip, media.TestPicture(320, 240, n)...)
	}
	if got := media.SplitJPEGs(append(bytes.Clone(clip), "tail"...), 100); len(got) != 20 ||
		!bytes.Equal(got[7], media.TestPicture(320, 240, 7)) {
		t.Errorf("split into %d frames, want 20", len(got))
	}
	p, err := media.Clip(clip, 10, 320)
	if err != nil || len(media.SplitJPEGs(p.Bytes, 100)) != 10 || !bytes.Equal(p.Bytes, clip[:len(p.Bytes)]) {
		t.Errorf("a clip that fits was changed: %v", err)
	}
	loud := slices.Repeat(noise(640, 480), 150)
	p, err = media.Clip(loud, 150, 640)
	if err != nil || len(p.Bytes) > media.MaxBytes || len(media.SplitJPEGs(p.Bytes, 900)) != 150 {
		t.Errorf("150 frames of noise: %d bytes, width %d, error %v; want all within MaxBytes", len(p.Bytes), p.Width, err)
	}
	if _, err := media.Clip([]byte("x"), 1, 64); err == nil {
		t.Error("Clip accepted data without a JPEG")
	}
	if w := media.ClipWidth(1280, 900, 3024, 4032); w < 64 || w > 200 {
		t.Errorf("width for 900 frames: %d, want 64 to 200", w)
	}
	if w := media.ClipWidth(640, 10, 1920, 1080); w != 640 {
		t.Errorf("width for 10 frames: %d, want 640", w)
	}
}

// riff builds a WAV file.
func riff(format []uint16, data []byte) []byte {
	var b bytes.Buffer
	b.WriteString("RIFF\xff\xff\xff\xffWAVELIST\x03\x00\x00\x00abc\x00fmt ")
	_ = binary.Write(&b, binary.LittleEndian, uint32(2*len(format)))
	_ = binary.Write(&b, binary.LittleEndian, format)
	b.WriteString("data\xff\xff\xff\xff") // unknown length, as written by streams
	b.Write(data)
	return b.Bytes()
}

func TestWAV(t *testing.T) {
	stereo, err := media.ParseWAV(riff([]uint16{1, 2, 16000, 0, 0, 0, 4, 16},
		[]byte{10, 0, 30, 0, 0xf6, 0xff, 0xe2, 0xff}))
	if err != nil {
		t.Fatal(err)
	}
	if c := stereo.Chunk(0, 16000); len(c) != 3200 || c[0] != 20 || int16(binary.LittleEndian.Uint16(c[2:])) != -20 ||
		c[4] != 0 {
		t.Errorf("mixed: %v", c[:6])
	}
	eight, err := media.ParseWAV(riff([]uint16{1, 1, 8000, 0, 0, 0, 1, 8}, bytes.Repeat([]byte{129}, 800)))
	if err != nil {
		t.Fatal(err)
	}
	if c := eight.Chunk(0, 8000); binary.LittleEndian.Uint16(c) != 256 || binary.LittleEndian.Uint16(c[1598:]) != 256 {
		t.Error("8 bits")
	}
	if c := eight.Chunk(1, 8000); !bytes.Equal(c, make([]byte, 1600)) {
		t.Error("the sound is not silent after its end")
	}
	var tone *media.Sound
	a, b := tone.Chunk(0, 16000), tone.Chunk(1, 16000)
	if bytes.Equal(a, make([]byte, 3200)) || !bytes.Equal(a[:1600], tone.Chunk(0, 16000)[:1600]) || len(b) != 3200 {
		t.Error("the tone is silent, or differs between rates")
	}
	for name, data := range map[string][]byte{"empty": nil, "no data": []byte("RIFF\x00\x00\x00\x00WAVE"),
		"float":   riff([]uint16{3, 1, 8000, 0, 0, 0, 4, 32}, nil),
		"no rate": riff([]uint16{1, 1, 0, 0, 0, 0, 2, 16}, nil), "no channel": riff([]uint16{1, 0, 8000, 0, 0, 0, 2,
			16}, nil), "short": riff([]uint16{1, 1}, nil)} {
		if _, err := media.ParseWAV(data); err == nil {
			t.Errorf("ParseWAV accepted the case %s", name)
		}
	}
}

func FuzzParseWAV(f *testing.F) {
	f.Add(riff([]uint16{1, 2, 16000, 0, 0, 0, 4, 16}, []byte{10, 0, 30, 0}))
	f.Add(riff([]uint16{0xFFFE, 1, 8000, 0, 0, 0, 1, 8, 0, 0, 0, 0, 1}, []byte{1, 2, 3}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := media.ParseWAV(data); err == nil && len(s.Chunk(0, 16000)) != 3200 {
			t.Error("a chunk does not have 3200 bytes")
		}
	})
}

func FuzzSplitJPEGs(f *testing.F) {
	f.Add(append(media.TestPicture(8, 8, 0), media.TestPicture(8, 8, 1)...))
	f.Add([]byte{0xFF, 0xD8, 0xFF, 0xD9, 0xFF, 0xD8, 0xFF, 0xFF, 0xDA, 0, 2, 1, 0xFF, 0, 0xFF, 0xD9})
	f.Fuzz(func(t *testing.T, data []byte) {
		total := 0
		for _, one := range media.SplitJPEGs(data, 50) {
			total += len(one)
		}
		if total > len(data) {
			t.Error("the frames are larger than the input")
		}
		if len(data) < 1<<12 {
			_, _ = media.Clip(data, 3, 16)
		}
	})
}
