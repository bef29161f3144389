package g1

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

// client is the part of a driver that these tests need: a clock and both connections.
type client struct {
	t    *testing.T
	pair *Pair
	now  int64
}

func connect(t *testing.T, o Options) *client {
	t.Helper()
	c := &client{t: t, pair: New(o)}
	c.open(Left)
	c.open(Right)
	return c
}

func (c *client) open(s Side) {
	c.t.Helper()
	a := c.pair.Arm(s)
	if err := a.Connect(c.now, 251); err != nil {
		c.t.Fatal(err)
	}
	if err := a.Subscribe(c.now, NotifyUUID, true); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) send(s Side, value ...byte) {
	c.t.Helper()
	if err := c.pair.Arm(s).Write(c.now, WriteUUID, value, false); err != nil {
		c.t.Fatal(err)
	}
}

// values returns the values that an arm has sent since the last call.
func (c *client) values(s Side) (values [][]byte) {
	c.pair.Arm(s).Tick(c.now)
	for _, o := range c.pair.Arm(s).Take() {
		if o.Dropped {
			values = append(values, []byte("dropped"))
			continue
		}
		values = append(values, o.Value)
	}
	return values
}

// want checks that an arm sent exactly one value that starts with the given bytes.
func (c *client) want(s Side, begin ...byte) {
	c.t.Helper()
	if got := c.values(s); len(got) != 1 || !bytes.HasPrefix(got[0], begin) {
		c.t.Errorf("the %v arm sent % X, want one value that begins with % X", s, got, begin)
	}
}

func (c *client) ask(s Side, value []byte, begin ...byte) {
	c.t.Helper()
	c.send(s, value...)
	c.want(s, begin...)
}

// violations checks that the next violations contain these texts, in order.
func (c *client) violations(want ...string) {
	c.t.Helper()
	got := c.pair.Violations()
	if len(got) != len(want) {
		c.t.Fatalf("violations %q, want %q", got, want)
	}
	for i, text := range want {
		if !strings.Contains(got[i], text) {
			c.t.Errorf("violation %q, want one with %q", got[i], text)
		}
	}
}

// file returns a BMP file. It sets the pixels for which lit returns true.
func file(height int, lit func(x, y int) bool) []byte {
	pixels := make([]byte, Width/8*height)
	for y := range height {
		for x := range Width {
			if lit(x, y) {
				pixels[(height-1-y)*Width/8+x/8] |= 0x80 >> (x % 8)
			}
		}
	}
	b := []byte("BM")
	size := len(pixels)
	for _, n := range []int{62 + size, 0, 62, 40, Width, height, 1 | 1<<16, 0, size, 0, 0, 2, 2, 0, 0xFFFFFF} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return append(b, pixels...)
}

func corner(x, y int) bool { return x < 3 && y < 2 }

func packets(bmp []byte) (all [][]byte) {
	for i, part := range slices.Collect(slices.Chunk(bmp, 194)) {
		head := []byte{0x15, byte(i)}
		if i == 0 {
			head = append(head, 0x00, 0x1C, 0x00, 0x00)
		}
		all = append(all, slices.Concat(head, part))
	}
	return all
}

func check(data []byte) []byte {
	return binary.BigEndian.AppendUint32([]byte{0x16}, crc32.ChecksumIEEE(data))
}

func crcOf(bmp []byte) []byte { return check(slices.Concat([]byte{0x00, 0x1C, 0x00, 0x00}, bmp)) }

func (c *client) upload(s Side, bmp []byte) {
	c.t.Helper()
	for _, p := range packets(bmp) {
		c.send(s, p...)
	}
	if got := c.values(s); got != nil {
		c.t.Errorf("bitmap packets were answered: % X", got)
	}
	c.ask(s, []byte{0x20, 0x0D, 0x0E}, 0x20, 0xC9)
}

func (c *client) show(s Side, bmp []byte) {
	c.t.Helper()
	c.upload(s, bmp)
	crc := crcOf(bmp)
	c.ask(s, crc, crc[0], crc[1], crc[2], crc[3], crc[4], 0xC9)
}

func TestPair_Advertises(t *testing.T) {
	p := New(Options{Channel: 27})
	for _, s := range []Side{Left, Right} {
		adv, ok := p.Arm(s).Advertisement()
		parts := strings.Split(adv.Name, "_")
		if !ok || len(parts) != 4 || parts[0] != "Even G1" || parts[1] != "27" || parts[2] != []string{"L", "R"}[s] {
			t.Errorf("advertisement %+v, %v", adv, ok)
		}
	}
	if err := p.Left().Connect(0, 251); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Left().Advertisement(); ok {
		t.Error("a connected arm advertises")
	}
	if err := p.Left().Connect(1, 251); !errors.Is(err, peripheral.ErrBusy) {
		t.Errorf("second connection: %v", err)
	}
}

func TestPair_AnswersHandshake(t *testing.T) {
	c := connect(t, Options{Serial: "S100LBBL000001"})
	for _, s := range []Side{Left, Right} {
		c.send(s, 0xF4, 0x01)
		c.ask(s, []byte{0x4D, 0x01}, 0x4D, 0xC9)
		c.ask(s, []byte{0x4D, 0xFB}, 0x4D, 0xC9)
		c.ask(s, []byte{0x25, 0x06, 0x00, 0x07, 0x04, 0x07}, 0x25, 0x06, 0x00, 0x07, 0x04, 0x07)
		c.ask(s, []byte{0x25, 0x08}, 0x25, 0x08)
		c.ask(s, []byte{0x2C, 0x01}, 0x2C, 0x66, 80)
		c.ask(s, []byte{0x34}, append([]byte{0x34, 0x34}, "S100LBBL000001"...)...)
		c.ask(s, []byte{0x2B}, 0x2B, 0x69, 0x0A)
		c.ask(s, []byte{0x23, 0x74}, []byte("net build time: ")...)
		c.ask(s, []byte{0x18}, 0x18, 0xC9)
	}
	c.violations()
}

func TestPair_ShowsPicture(t *testing.T) {
	c := connect(t, Options{})
	bmp := file(136, corner)
	if first := packets(bmp)[0]; !bytes.HasPrefix(first, []byte{0x15, 0, 0, 0x1C, 0, 0, 0x42, 0x4D}) || len(first) != 200 {
		t.Fatalf("first packet % X", first)
	}
	if n := len(packets(bmp)); n != 51 {
		t.Fatalf("%d packets, want 51", n)
	}
	c.now = 500
	c.show(Left, bmp)
	if c.pair.Lit(0, 0) {
		t.Error("lit before the right arm has the picture")
	}
	c.show(Right, bmp)
	for _, at := range [][2]int{{0, 0}, {2, 1}, {3, 1}, {2, 2}, {575, 135}, {-1, 0}, {0, 136}} {
		if got := c.pair.Lit(at[0], at[1]); got != (at[0] >= 0 && corner(at[0], at[1])) {
			t.Errorf("pixel %v is lit: %v", at, got)
		}
	}
	if shown := c.pair.Pictures(Right); len(shown) != 1 || shown[0].At != 500 {
		t.Errorf("%d pictures", len(shown))
	}
	c.ask(Left, []byte{0x18}, 0x18, 0xC9)
	if _, ok := c.pair.Picture(Left); ok {
		t.Error("18 did not close the picture")
	}
	c.violations()
}

// The vendor's own image_1.bmp has 135 rows.
func TestPair_ShowsPictureOf135Rows(t *testing.T) {
	c := connect(t, Options{})
	c.show(Left, file(135, corner))
	if picture, ok := c.pair.Picture(Left); !ok || picture.Rect.Dy() != 135 {
		t.Error("no picture of 135 rows")
	}
	c.violations()
}

func TestPair_AnswersRepeatedEndAndCRC(t *testing.T) {
	c := connect(t, Options{})
	bmp := file(136, corner)
	c.show(Left, bmp)
	c.now += 1000
	c.ask(Left, []byte{0x20, 0x0D, 0x0E}, 0x20, 0xC9)
	c.ask(Left, crcOf(bmp), 0x16)
	if n := len(c.pair.Pictures(Left)); n != 1 {
		t.Errorf("%d pictures, want 1", n)
	}
	c.violations()
}

func TestPair_RefusesBadUploads(t *testing.T) {
	bmp := file(136, corner)
	all := packets(bmp)
	swapped := slices.Clone(all)
	swapped[3], swapped[4] = swapped[4], swapped[3]
	withoutAddress := slices.Concat([][]byte{slices.Concat([]byte{0x15, 0}, bmp[:194])}, all[1:])
	long := slices.Concat([][]byte{all[0], slices.Concat(all[1], []byte{1})}, all[2:])
	short := slices.Clone(all)
	short[7] = short[7][:100]
	twice := slices.Concat(all[:8], all[7:])
	end := []byte{0x20, 0x0D, 0x0E}
	edited := func(at int, value byte) []byte {
		b := bytes.Clone(bmp)
		b[at] = value
		return b
	}
	noise := bytes.Repeat([]byte{1}, 300)
	offset, size, black := edited(10, 64), edited(2, 1), edited(54, 1)
	little := crcOf(bmp)
	slices.Reverse(little[1:])
	for name, test := range map[string]struct {
		packets [][]byte
		crc     []byte
		want    string
	}{
		"no address":      {withoutAddress, crcOf(bmp), "lacks the address"},
		"wrong order":     {swapped, crcOf(bmp), "bitmap packet 4 instead of 3"},
		"too long":        {long, crcOf(bmp), "packet 1 with 195 bytes"},
		"crc of the file": {all, check(bmp), "does not cover the address"},
		"crc reversed":    {all, little, "little-endian"},
		"crc of others":   {all, check([]byte("other")), "instead of"},
		"short packet":    {short, crcOf(bmp), "packet 8 after one with less than 194"},
		"packet twice":    {twice, crcOf(bmp), "packet 7 instead of 8"},
		"other offset":    {packets(offset), crcOf(offset), "without pixels at byte 62"},
		"other file size": {packets(size), crcOf(size), "of another size"},
		"other colours":   {packets(black), crcOf(black), "without the colours 0 black"},
		"lost the last":   {all[:50], crcOf(bmp), "of the 9700 bytes"},
		"not a bitmap":    {packets(noise), crcOf(noise), "not an uncompressed BMP"},
		"other size":      {packets(file(100, corner)), crcOf(file(100, corner)), "not a picture of 576x136"},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, Options{})
			for _, p := range test.packets {
				c.send(Left, p...)
			}
			c.send(Left, end...)
			c.send(Left, test.crc...)
			if v := c.pair.Violations(); len(v) == 0 || !strings.Contains(v[0], test.want) {
				t.Errorf("violations %.3q, want %q first", v, test.want)
			}
			if _, ok := c.pair.Picture(Left); ok {
				t.Error("a picture is shown")
			}
		})
	}
}

func TestPair_RefusesOutOfSequence(t *testing.T) {
	c := connect(t, Options{})
	c.ask(Left, []byte{0x20, 0x0D, 0x0E}, 0x20, 0xCA)
	c.ask(Left, []byte{0x16, 1, 2, 3, 4}, 0x16, 1, 2, 3, 4, 0xCA)
	c.upload(Left, file(136, corner))
	c.send(Left, packets(file(136, corner))[1]...)
	c.violations("end without a bitmap", "CRC before the end", "packet 1 after the end")
}
