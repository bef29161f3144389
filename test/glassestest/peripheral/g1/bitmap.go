package g1

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"slices"

	"golang.org/x/image/bmp"
)

const (
	// chunk is the number of bytes of the file per packet (vendor: README.md, bmp_update_manager.dart).
	chunk = 194
	// maxShown is the number of pictures that an arm remembers.
	maxShown = 128
)

// address precedes the file in the first packet and in the CRC (vendor: README.md).
var address = []byte{0x00, 0x1C, 0x00, 0x00}

// upload is a file that a client is sending.
type upload struct {
	began   int64
	data    []byte // the file so far, without the address
	next    int    // index of the next packet, at most 256; 0 if there is no upload
	short   bool   // the last packet was short, so no more may follow
	damaged bool   // a packet was refused
	lost    bool   // a fault lost a packet, so later problems are not the client's violations
	ended   bool
	picture *image.Paletted // set once it has been shown
}

// handleBitmap stores a packet of a file. Packets are not answered (vendor: bmp_update_manager.dart).
func (a *Arm) handleBitmap(v []byte) {
	if a.happens(a.faults.LosePacket) {
		a.upload.lost = true
		return
	}
	if len(v) < 3 {
		a.violation("bitmap packet of %d bytes", len(v))
		return
	}
	index, data := int(v[1]), v[2:]
	if index == 0 {
		a.upload = upload{began: a.Now()}
		if !bytes.HasPrefix(data, address) {
			a.violation("the first bitmap packet lacks the address % X", address)
			a.upload.damaged = true
			return
		}
		data = data[len(address):]
	}
	u := &a.upload
	switch {
	case u.ended:
		a.refuse("bitmap packet %d after the end", index)
	case index != u.next:
		a.refuse("bitmap packet %d instead of %d", index, u.next)
	case u.short:
		a.refuse("bitmap packet %d after one with less than %d bytes", index, chunk)
	case len(data) == 0 || len(data) > chunk:
		a.refuse("bitmap packet %d with %d bytes of data", index, len(data))
	default:
		u.data = append(u.data, data...)
		u.next++
		u.short = len(data) < chunk
	}
}

func (a *Arm) refuse(format string, args ...any) {
	a.upload.damaged = true
	if !a.upload.lost {
		a.violation(format, args...)
	}
}

// handleEnd may be called again, because clients repeat the command if its answer is lost.
func (a *Arm) handleEnd(v []byte) {
	switch u := &a.upload; {
	case !bytes.Equal(v, []byte{cmdEnd, 0x0D, 0x0E}):
		a.violation("end % X", v[:min(len(v), 8)])
		a.padded(cmdEnd, failed)
	case u.next == 0:
		if !u.lost {
			a.violation("end without a bitmap")
		}
		a.padded(cmdEnd, failed)
	default:
		u.ended = true
		a.padded(cmdEnd, ok)
	}
}

// handleCRC checks the CRC-32 (IEEE, which is Crc32Xz) of the address and the file, and shows the picture. Byte 5 of
// the answer is the result (vendor: bmp_update_manager.dart). The bytes before it repeat the CRC, which is an
// inference.
func (a *Arm) handleCRC(v []byte) {
	if !a.hasLength(v, 5) {
		return
	}
	verdict := byte(failed)
	switch u := &a.upload; {
	case !u.ended:
		if !u.lost {
			a.violation("CRC before the end")
		}
	case a.faults.FailCRC > 0:
		a.faults.FailCRC--
	case a.checkCRC(binary.BigEndian.Uint32(v[1:])):
		verdict = ok
		a.show()
	}
	a.padded(cmdCRC, v[1], v[2], v[3], v[4], verdict)
}

func (a *Arm) checkCRC(got uint32) bool {
	u := &a.upload
	want := crc32.ChecksumIEEE(slices.Concat(address, u.data))
	little := make([]byte, 4)
	binary.LittleEndian.PutUint32(little, got)
	switch {
	case u.damaged || u.lost && got != want:
		return false
	case got == want:
		return true
	case got == crc32.ChecksumIEEE(u.data):
		a.violation("the CRC does not cover the address")
	case binary.BigEndian.Uint32(little) == want:
		a.violation("the CRC is little-endian")
	default:
		a.violation("CRC %08X instead of %08X of the %d bytes received", got, want, len(u.data))
	}
	return false
}

// show shows the uploaded file.
func (a *Arm) show() {
	picture, problem := decode(a.upload.data)
	if problem != "" {
		a.violation("the file is %s", problem)
		return
	}
	again := a.upload.picture != nil && a.picture == a.upload.picture
	if a.pair.silent || again {
		return
	}
	a.closePanel()
	a.picture, a.upload.picture = picture, picture
	if n := len(a.shown); n == maxShown {
		a.shown = slices.Delete(a.shown, 0, 1)
	}
	a.shown = append(a.shown, Shown{Began: a.upload.began, At: a.Now(), Image: picture})
}

// header is the start of the vendor's image_1.bmp and image_2.bmp: file header, info header and two colours.
type header struct {
	Magic                [2]byte
	FileSize             uint32
	Reserved             uint32
	Offset               uint32
	InfoSize             uint32
	Width, Height        int32
	Planes, Bits         uint16
	Compression          uint32
	ImageSize            uint32
	XPerMetre, YPerMetre int32
	Used, Important      uint32
	Palette              [2]uint32
}

const headerSize = 62

// decode returns the picture in a BMP file, or a description of what is wrong with it. A set bit is a lit pixel.
func decode(file []byte) (picture *image.Paletted, problem string) {
	var h header
	if err := binary.Read(bytes.NewReader(file), binary.LittleEndian, &h); err != nil {
		return nil, "too short for a BMP header"
	}
	rows := headerSize + Width/8*int(h.Height)
	switch {
	case string(h.Magic[:]) != "BM" || h.InfoSize != 40 || h.Planes != 1 || h.Compression != 0:
		return nil, "not an uncompressed BMP file"
	case h.Bits != 1 || h.Width != Width || h.Height != Height && h.Height != Height-1:
		return nil, "not a picture of 576x136 or 576x135 pixels with 1 bit"
	case h.Offset != headerSize:
		return nil, "without pixels at byte 62"
	// The vendor's image_2.bmp has two bytes after its pixels.
	case len(file) < rows || len(file) > rows+2 || int(h.FileSize) != len(file) && int(h.FileSize) != rows:
		return nil, "of another size than its header says"
	case h.Palette[0]&0xFFFFFF != 0 || h.Palette[1]&0xFFFFFF != 0xFFFFFF:
		return nil, "without the colours 0 black and 1 white"
	}
	decoded, err := bmp.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, "not decodable: " + err.Error()
	}
	picture, is := decoded.(*image.Paletted)
	if !is {
		return nil, "not a picture with a palette"
	}
	return picture, ""
}
