package media_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"slices"
	"testing"

	"github.com/service-dev/service/glasses/media"
	"github.com/service-dev/service/glasses/media/exiftest"
)

var orders = []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian}

// wantUpright fails the test unless data is an upright JPEG of the given width that has no metadata.
func wantUpright(t *testing.T, name string, p media.Picture, width int) {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(p.Bytes))
	if err == nil {
		err = exiftest.CheckUpright(img, img.Bounds())
	}
	if err == nil && (img.Bounds().Size() != image.Pt(p.Width, p.Height) || p.Width != width) {
		err = fmt.Errorf("%v, reported as %d by %d; want width %d", img.Bounds(), p.Width, p.Height, width)
	}
	if err == nil && (bytes.Contains(p.Bytes, []byte("Exif")) || bytes.Contains(p.Bytes, []byte(exiftest.Place))) {
		err = fmt.Errorf("the picture has metadata")
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// A picture is upright and has no metadata, whether or not it is scaled down.
func TestJPEG_IsUprightWithoutMetadata(t *testing.T) {
	for _, order := range orders {
		for o := 1; o <= 8; o++ {
			for kind, file := range map[string][]byte{"JPEG": exiftest.JPEG(order, o), "PNG": exiftest.PNG(order, o)} {
				for _, width := range []int{4000, exiftest.Width, 48, 32} {
					name := fmt.Sprintf("%s with orientation %d, %v, width %d", kind, o, order, width)
					p, err := media.JPEG(file, width)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					wantUpright(t, name, p, min(width, exiftest.Width))
				}
			}
			frame := exiftest.JPEG(order, o)
			clip, err := media.Clip(slices.Repeat(frame, 3), 3, 4000)
			frames := media.SplitJPEGs(clip.Bytes, 9)
			if err != nil || len(frames) != 3 {
				t.Fatalf("clip with orientation %d: %d frames, error %v; want 3", o, len(frames), err)
			}
			for _, f := range frames {
				frame := media.Picture{Bytes: f, Width: clip.Width, Height: clip.Height}
				wantUpright(t, fmt.Sprint("frame with orientation ", o), frame, exiftest.Width)
			}
		}
	}
}

// An upright JPEG keeps its pixels and its colours, but loses everything else.
func TestJPEG_RemovesMetadataWithoutEncoding(t *testing.T) {
	plain, _ := media.JPEG(media.TestPicture(64, 48, 0), 64)
	segment := func(marker byte, content string) []byte { return exiftest.Segment(marker, []byte(content)) }
	colour := segment(0xE2, "ICC_PROFILE\x00\x01\x01colours")
	adobe := segment(0xEE, "Adobe\x00\x64\x00\x00\x00\x00\x01")
	jfif := segment(0xE0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")
	thumbnail := segment(0xE0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x01\x01RGB")
	file := slices.Concat(plain.Bytes[:2], thumbnail, segment(0xE0, "JFXX\x00\x10thumbnail"),
		segment(0xE1, "Exif\x00\x00"+string(exiftest.Block(binary.LittleEndian, 1))),
		segment(0xE1, "http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta>home</x:xmpmeta>"), colour,
		segment(0xE2, "MPF\x00pictures"),
		segment(0xED, "Photoshop 3.0\x00home"),
		segment(0xEE, "Adobe\x00\x64\x00\x00\x00\x00\x01home"), segment(0xFE, "a comment"),
		plain.Bytes[2:], media.TestPicture(8, 8, 0),
		[]byte("MotionPhoto_Data"))
	want := slices.Concat(plain.Bytes[:2], jfif, colour, adobe, plain.Bytes[2:])
	p, err := media.JPEG(file, 64)
	if err != nil || !bytes.Equal(p.Bytes, want) {
		t.Errorf("%d bytes, error %v; want the %d bytes without metadata", len(p.Bytes), err, len(want))
	}
	filled := slices.Concat(plain.Bytes[:2], []byte("\xFF\xFF"), plain.Bytes[2:])
	if p, err := media.JPEG(filled, 64); err != nil || !bytes.Equal(p.Bytes, filled) ||
		len(media.SplitJPEGs(slices.Repeat(filled, 2), 9)) != 2 {
		t.Errorf("a picture with fill bytes was changed: %v", err)
	}
	if again, err := media.JPEG(p.Bytes, 64); err != nil || !bytes.Equal(again.Bytes, p.Bytes) {
		t.Errorf("a picture without metadata was changed: %v", err)
	}
	if _, err := media.JPEG(plain.Bytes[:len(plain.Bytes)-2], 64); err == nil {
		t.Error("JPEG accepted a truncated picture of the right width")
	}
}

// Damaged or meaningless metadata does not change a picture, and is not a reason to refuse it.
func TestJPEG_IgnoresUnusableMetadata(t *testing.T) {
	good := func() []byte { return exiftest.Block(binary.LittleEndian, 6) }
	changed := func(at int, with ...byte) []byte {
		b := good()
		copy(b[at:], with)
		return b
	}
	const entry = 8 + 2 + 12 // the orientation's
	blocks := map[string][]byte{"empty": {}, "text": []byte("not a TIFF header"), "byte order": changed(0, 'X', 'X'),
		"magic": changed(2, 43), "offset": changed(4, 0xFF, 0xFF, 0xFF, 0xFF),
		"offset at the end": changed(4, byte(len(good())-1)),
		"many entries":      append(changed(8, 0xFF, 0xFF, 1, 1)[:20], make([]byte, 100)...), "type": changed(entry+2, 4),
		"count": changed(entry+4, 2), "zero": changed(entry+8, 0), "nine": changed(entry+8, 9), "big": changed(entry+9, 6)}
	for i := range entry + 9 {
		blocks[fmt.Sprint("cut after ", i)] = good()[:i]
	}
	stored := media.TestPicture(64, 32, 0)
	for name, block := range blocks {
		for kind, file := range map[string][]byte{"JPEG": stored, "PNG": exiftest.PNG(binary.LittleEndian, 1)} {
			if p, err := media.JPEG(exiftest.Tag(file, block), 64); err != nil || p.Width != 64 || p.Height != 32 {
				t.Errorf("%s with %s: %d by %d, error %v; want 64 by 32", kind, name, p.Width, p.Height, err)
			}
		}
	}
}

// Rotation moves pixels without changing them, including pixels of a decoded JPEG with odd sides.
func TestTurn_KeepsEveryPixel(t *testing.T) {
	img, err := jpeg.Decode(bytes.NewReader(noise(33, 17)))
	if err != nil {
		t.Fatal(err)
	}
	for o := 1; o <= 8; o++ {
		if got := media.Turn(exiftest.Stored(o), o); !bytes.Equal(got.Pix, exiftest.Stored(1).Pix) {
			t.Errorf("orientation %d: the picture is not upright", o)
		}
		back := map[int]int{media.TurnLeft: 6, 6: media.TurnLeft}
		undo := cmp.Or(back[o], o) // the other orientations are their own inverse
		if got, want := media.Turn(media.Turn(img, o), undo), media.Turn(img, 1); !bytes.Equal(got.Pix, want.Pix) {
			t.Errorf("orientation %d turned back differs from the picture", o)
		}
	}
}

// The limits apply to the size of the upright picture.
func TestSize_IsOfTheUprightPicture(t *testing.T) {
	for o := 1; o <= 8; o++ {
		size, err := media.Size(exiftest.JPEG(binary.BigEndian, o))
		if err != nil || size != image.Pt(exiftest.Width, exiftest.Height) {
			t.Errorf("orientation %d: %v, error %v; want %d by %d", o, size, err, exiftest.Width, exiftest.Height)
		}
	}
}

// FuzzOrientation adds arbitrary EXIF blocks to a JPEG and a PNG.
func FuzzOrientation(f *testing.F) {
	for _, order := range orders {
		f.Add(exiftest.Block(order, 6))
	}
	f.Add([]byte("II*\x00\xff\xff\xff\xff"))
	f.Add([]byte("MM\x00*\x00\x00\x00\x08\xff\xff\x01\x12"))
	plain := [][]byte{media.TestPicture(16, 8, 0), exiftest.PNG(binary.LittleEndian, 1)}
	f.Fuzz(func(t *testing.T, block []byte) {
		for _, file := range plain {
			p, err := media.JPEG(exiftest.Tag(file, block[:min(len(block), 60_000)]), 4000)
			if err != nil || p.Width != 2*p.Height && p.Height != 2*p.Width {
				t.Errorf("%d by %d, error %v; want the picture, perhaps turned", p.Width, p.Height, err)
			}
		}
	})
}

// FuzzPicture converts arbitrary files. The result must have no metadata, and converting it again must not change it.
func FuzzPicture(f *testing.F) {
	f.Add(exiftest.JPEG(binary.LittleEndian, 6))
	f.Add(exiftest.PNG(binary.BigEndian, 5))
	f.Add(media.TestPicture(8, 8, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		if size, err := media.Size(data); err != nil || size.X*size.Y > 1<<16 {
			return
		}
		p, err := media.JPEG(data, 64)
		if err != nil {
			return
		}
		again, err := media.JPEG(p.Bytes, 64)
		if err != nil || !bytes.Equal(again.Bytes, p.Bytes) || p.Width > 64 {
			t.Errorf("a converted picture, %d wide, is not kept: %v", p.Width, err)
		}
	})
}
