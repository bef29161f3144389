// Command bareglasses is the radio and the baseline of the benchmark of real glasses. It runs an org.bluez with two
// pairs of emulated Even G1 and prints the address of its bus. For each line on its standard input it writes one
// picture to both arms of the second pair, with nothing but godbus, and prints two numbers of nanoseconds: how long
// that took, and how long the glasses themselves needed for the latest picture of the first pair. It exits when its
// standard input closes.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// airTime and answerTime are the ms that an arm needs for a packet and for an answer. With them a picture takes the
// 1.6 s of the vendor's own test.
const airTime, answerTime = 30, 10

const (
	device         = "org.bluez.Device1"
	characteristic = "org.bluez.GattCharacteristic1"
)

// host is what fakebluez needs of a test.
type host struct {
	testing.TB
	cleanups []func()
}

func (h *host) Helper()           {}
func (h *host) Cleanup(f func())  { h.cleanups = append(h.cleanups, f) }
func (h *host) Output() io.Writer { return os.Stderr }

func (h *host) Skip(args ...any)                  { h.Fatal(args...) }
func (h *host) Fatalf(format string, args ...any) { h.Fatal(fmt.Sprintf(format, args...)) }

func (h *host) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}

func main() {
	h := &host{}
	defer func() {
		for _, f := range slices.Backward(h.cleanups) {
			f()
		}
	}()
	pair := func(channel int) *g1.Pair {
		return g1.New(g1.Options{Channel: channel, AirTime: airTime, AnswerTime: answerTime})
	}
	ours, bare := pair(27), pair(31)
	radio := fakebluez.Start(h, fakebluez.Options{Peripherals: []peripheral.Peripheral{
		ours.Left(), ours.Right(), bare.Left(), bare.Right(),
	}})
	fmt.Println(radio.Address)
	in := bufio.NewScanner(os.Stdin)
	var arms []*arm
	for n := 0; in.Scan(); n++ {
		if arms == nil {
			var err error
			if arms, err = connect(radio.Address, "Even G1_31_"); err != nil {
				h.Fatal(err)
			}
		}
		begin := time.Now()
		if err := show(arms, picture(byte(n))); err != nil {
			h.Fatal(err)
		}
		took, own := time.Since(begin), time.Duration(0)
		radio.Emulate(func(int64) {
			if shown := ours.Pictures(g1.Left); len(shown) > 0 {
				last := shown[len(shown)-1]
				own = time.Duration(last.At-last.Began) * time.Millisecond
			}
		})
		for _, a := range arms { // an arm without a heartbeat leaves after 32 s
			if err := a.exchange([]byte{0x25, 0x06, 0x00, byte(n), 0x04, byte(n)}); err != nil {
				h.Fatal(err)
			}
		}
		fmt.Println(took.Nanoseconds(), own.Nanoseconds())
	}
}

// arm is one connected peripheral.
type arm struct {
	write   dbus.BusObject
	answers chan []byte
}

// connect connects both peripherals whose name begins like this.
func connect(address, name string) (arms []*arm, err error) {
	conn, err := dbus.Connect(address)
	if err != nil {
		return nil, err
	}
	adapter := conn.Object("org.bluez", fakebluez.Adapter)
	if err := adapter.Call("org.bluez.Adapter1.StartDiscovery", 0).Err; err != nil {
		return nil, err
	}
	if err := conn.AddMatchSignal(dbus.WithMatchMember("PropertiesChanged")); err != nil {
		return nil, err
	}
	signals := make(chan *dbus.Signal, 256)
	conn.Signal(signals)
	byPath := map[dbus.ObjectPath]*arm{}
	for len(arms) < 2 {
		all, err := objects(conn)
		if err != nil {
			return nil, err
		}
		for path, o := range all {
			if text, _ := o[device]["Name"].Value().(string); strings.HasPrefix(text, name) {
				if err := conn.Object("org.bluez", path).Call(device+".Connect", 0).Err; err != nil {
					return nil, err
				}
				a, notify, err := open(conn, path)
				if err != nil {
					return nil, err
				}
				arms, byPath[notify] = append(arms, a), a
			}
		}
		time.Sleep(100 * time.Millisecond) // until the next advertisement
	}
	go func() {
		for s := range signals {
			if changed, ok := s.Body[1].(map[string]dbus.Variant); ok && byPath[s.Path] != nil {
				if value, ok := changed["Value"].Value().([]byte); ok {
					byPath[s.Path].answers <- value
				}
			}
		}
	}()
	return arms, nil
}

func objects(conn *dbus.Conn) (all map[dbus.ObjectPath]map[string]map[string]dbus.Variant, err error) {
	err = conn.Object("org.bluez", "/").Call("org.freedesktop.DBus.ObjectManager.GetManagedObjects", 0).Store(&all)
	return all, err
}

// open waits for the characteristics of a device and subscribes.
func open(conn *dbus.Conn, path dbus.ObjectPath) (a *arm, notify dbus.ObjectPath, err error) {
	a = &arm{answers: make(chan []byte, 64)}
	for a.write == nil || notify == "" {
		time.Sleep(50 * time.Millisecond) // until the services are resolved
		all, err := objects(conn)
		if err != nil {
			return nil, "", err
		}
		for at, o := range all {
			uuid, _ := o[characteristic]["UUID"].Value().(string)
			switch {
			case !strings.HasPrefix(string(at), string(path)+"/"):
			case strings.EqualFold(uuid, g1.WriteUUID):
				a.write = conn.Object("org.bluez", at)
			case strings.EqualFold(uuid, g1.NotifyUUID):
				notify = at
			}
		}
	}
	return a, notify, conn.Object("org.bluez", notify).Call(characteristic+".StartNotify", 0).Err
}

// picture returns the packets of a picture, and at last the one with its checksum: a BMP file of 576x136 pixels.
func picture(pattern byte) (packets [][]byte) {
	const header, stride, rows = 62, 576 / 8, 136
	file := make([]byte, header+stride*rows)
	for i := range file[header:] {
		file[header+i] = pattern ^ byte(i)
	}
	copy(file, "BM")
	le := binary.LittleEndian
	for at, value := range map[int]uint32{
		2: header + stride*rows, 10: header, 14: 40, 18: 576, 22: rows, 26: 1 | 1<<16, 34: stride * rows, 58: 0xFFFFFF,
	} {
		le.PutUint32(file[at:], value)
	}
	address := []byte{0x00, 0x1C, 0x00, 0x00}
	sum := crc32.ChecksumIEEE(slices.Concat(address, file))
	for part := range slices.Chunk(file, 194) {
		packet := []byte{0x15, byte(len(packets))}
		if len(packets) == 0 {
			packet = append(packet, address...)
		}
		packets = append(packets, append(packet, part...))
	}
	return append(packets, []byte{0x20, 0x0D, 0x0E}, binary.BigEndian.AppendUint32([]byte{0x16}, sum))
}

// show writes a picture to both arms at once and waits until both have accepted its checksum.
func show(arms []*arm, packets [][]byte) error {
	errs := make(chan error, len(arms))
	for _, a := range arms {
		go func() { errs <- a.send(packets) }()
	}
	for range arms {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func (a *arm) send(packets [][]byte) error {
	for i, p := range packets {
		put := a.put
		if i >= len(packets)-2 { // the end and the checksum are answered
			put = a.exchange
		}
		if err := put(p); err != nil {
			return err
		}
	}
	return nil
}

func (a *arm) put(packet []byte) error {
	how := map[string]dbus.Variant{"type": dbus.MakeVariant("command")}
	return a.write.Call(characteristic+".WriteValue", 0, packet, how).Err
}

// exchange writes a packet and waits for its answer.
func (a *arm) exchange(packet []byte) error {
	if err := a.put(packet); err != nil {
		return err
	}
	for answer := range a.answers {
		if len(answer) > 0 && answer[0] == packet[0] {
			break
		}
	}
	return nil
}
