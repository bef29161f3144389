package g1

import (
	"bytes"
	"encoding/hex"
	"image"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/driver"
)

// Bytes from the vendor's documents and logs. The numbers in brackets are the sources: [1] EvenDemoApp, README.md;
// [2] EvenDemoApp, lib/services/proto.dart; [3] EvenDemoApp, lib/controllers/bmp_update_manager.dart.
func TestPackets_AreThoseOfTheVendor(t *testing.T) {
	p := newPicture(encodeBMP(image.NewNRGBA(image.Rect(0, 0, 576, 136)), driver.Panel{}))
	if got := hex.EncodeToString(p.packets[0][:8]); got != "1500001c0000424d" { // [3], address and "BM"
		t.Errorf("first packet begins with %s, want 1500001c0000424d", got)
	}
	if got := hex.EncodeToString(p.packets[1][:2]); got != "1501" {
		t.Errorf("second packet begins with %s, want 1501", got)
	}
	if len(p.packets) != 51 || len(p.packets[0]) != 200 || len(p.packets[1]) != 196 { // [1]: 194 bytes in a packet
		t.Errorf("got %d packets of %d and %d bytes, want 51 of 200 and 196", len(p.packets), len(p.packets[0]),
			len(p.packets[1]))
	}
	if got := hex.EncodeToString(heartbeat(7)); got != "250600070407" { // [2]
		t.Errorf("got heartbeat %s, want 250600070407", got)
	}
}

// The header is the same as in the vendor's picture (EvenDemoApp, assets/images/image_2.bmp), which has 576x136
// pixels.
func TestBMP_HasTheVendorsHeader(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 576, 136))
	img.Set(0, 0, color.NRGBA{G: 255, A: 255})
	file := encodeBMP(img, driver.Panel{})
	want := "424d7e26000000000000" + "3e000000" + "28000000" + "40020000" + "88000000" + "0100" + "0100" + "00000000" +
		"40260000"
	if got := hex.EncodeToString(file[:38]); got != want {
		t.Errorf("got header %s, want %s", got, want)
	}
	if len(file) != 9854 || file[62+135*72] != 0x80 {
		t.Errorf("got %d bytes and %x for the top left pixel, want 9854 and 80", len(file), file[62+135*72])
	}
	inverted := encodeBMP(img, driver.Panel{Inverted: true, Rows: 135})
	if len(inverted) != 62+135*72 || inverted[62+134*72] != 0x7F || inverted[62] != 0xFF {
		t.Errorf("inverted, 135 rows: got %d bytes, %x and %x", len(inverted), inverted[62+134*72], inverted[62])
	}
}

// Packets that reset, update or configure the glasses cannot be sent, regardless of the rest of the driver.
func TestPermitted_AllowsNothingElse(t *testing.T) {
	for _, packet := range []string{
		"", "2372", "237200", "0301", "030c", "0100", "012a01", "2700", "2701", "4e0001000071000001", "f401", "0500", "0700",
		"1801", "0e02", "0e0100", "250600010402", "2506000104", "4dfb", "200d", "16000000", "1500", "3401", "2c02", "02",
	} {
		data, err := hex.DecodeString(packet)
		if err != nil {
			t.Fatal(err)
		}
		if permitted(data) {
			t.Errorf("%s may be sent", packet)
		}
	}
}

func TestPair_MatchesOnlyArmsOfG1(t *testing.T) {
	for name, want := range map[string][2]string{
		"Even G1_27_L_119A6C": {"Even G1_27", Left}, "Even G1_27_R_0": {"Even G1_27", Right},
	} {
		pair, link, ok := Pair(name)
		if !ok || pair != want[0] || link != want[1] {
			t.Errorf("%q: got %q, %q, %v, want %v", name, pair, link, ok, want)
		}
	}
	for _, name := range []string{
		"", "monocle", "Even G1_27_X_119A6C", "Even G1_27_L_", "Even G1_2\u202e7_L_11", "Even G1_27_L_119A6C\n",
		"xEven G1_27_L_119A6C", "Even G2_27_L_119A6C", "Even G1__L_11", strings.Repeat("Even G1_27_L_1", 20),
	} {
		if pair, _, ok := Pair(name); ok {
			t.Errorf("%q: taken for a part of %q", name, pair)
		}
	}
}

// FuzzNotify feeds arbitrary bytes to both arms at arbitrary times. The driver must not panic, send no forbidden
// packet, have at most one write per link waiting for the carrier, and use bounded memory.
func FuzzNotify(f *testing.F) {
	f.Add([]byte("\x02\xf5\x01\x02\xf5\x00\x06\x25\x06\x00\x01\x04\x01"))
	f.Add([]byte("\xffnet build time: 2024"))
	f.Add([]byte("\x03\xf1\x00\x01\x02\x0e\xc9"))
	f.Fuzz(notifyBoth)
}

func notifyBoth(t *testing.T, script []byte) {
	d := New(driver.Panel{})
	var now int64
	writing := map[string]bool{}
	drain := func() {
		for _, o := range d.Take() {
			if o.Write == nil {
				continue
			}
			if !permitted(o.Write.Data) {
				t.Fatalf("it sends %x", o.Write.Data)
			}
			if writing[o.Write.Link] {
				t.Fatalf("two writes of the %s link wait for the carrier", o.Write.Link)
			}
			writing[o.Write.Link] = true
		}
	}
	for _, key := range []string{Left, Right} {
		d.Event(now, driver.Event{Kind: driver.LinkUp, Link: key, MTU: 247})
	}
	img := image.NewNRGBA(image.Rect(0, 0, 576, 136))
	d.Do(now, device.Ask{ID: 1, Kind: device.AskShow}, img)
	d.Do(now, device.Ask{ID: 2, Kind: device.AskMicOn, SampleRate: 16000}, nil)
	for n := 0; n < len(script); n++ {
		size := int(script[n])
		data := script[min(n+1, len(script)):min(n+1+size, len(script))]
		n += len(data)
		key := []string{Left, Right}[size%2]
		now += int64(size)
		d.Event(now, driver.Event{Kind: driver.Notified, Link: key, Data: bytes.Clone(data)})
		drain()
		if writing[key] {
			writing[key] = false
			d.Event(now, driver.Event{Kind: driver.Written, Link: key})
			drain()
		}
	}
	if n := len(d.mic.chunks); n > maxChunks {
		t.Fatalf("%d chunks of sound wait, want at most %d", n, maxChunks)
	}
	for _, a := range d.arms {
		if len(a.jobs) > 20 {
			t.Fatalf("%d jobs wait for the %s arm", len(a.jobs), a.key)
		}
	}
}

func TestMicrophone_ConcealsLostPackets(t *testing.T) {
	d := New(driver.Panel{})
	d.Do(0, device.Ask{ID: 1, Kind: device.AskMicOn, SampleRate: 8000}, nil)
	packet := func(seq byte) []byte { return append([]byte{opAudio, seq}, make([]byte, audioPacket-2)...) }
	d.mic.packet(packet(254))
	d.mic.packet(packet(254))                 // twice
	d.mic.packet(packet(0))                   // 255 is lost
	d.mic.packet(packet(200))                 // many are lost
	d.mic.packet(packet(201)[:audioPacket-1]) // too short
	if n := len(d.mic.chunks); n != 1+2+maxGap+1 {
		t.Errorf("got %d chunks, want %d", n, 1+2+maxGap+1)
	}
	if slices.ContainsFunc(d.mic.chunks, func(c []byte) bool { return len(c) != 1600 }) {
		t.Error("a chunk is not 100 ms of 8000 Hz")
	}
}
