package chromium

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/deviceaccess"
	"github.com/chromedp/chromedp"
)

// OpenBluetooth is like Open, for a Chromium that uses Web Bluetooth over the D-Bus at the address bus.
func OpenBluetooth(t *testing.T, bus string, flags ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	opts := BluetoothFlags(bus)
	for _, flag := range []string{ // these would keep hidden tabs from being slowed down, as they are for users
		"disable-background-timer-throttling", "disable-backgrounding-occluded-windows", "disable-renderer-backgrounding",
	} {
		opts = append(opts, chromedp.Flag(flag, false))
	}
	return Open(t, append(opts, flags...)...)
}

// BluetoothFlags returns the options of a Chromium that uses Bluetooth over the D-Bus at the address bus.
func BluetoothFlags(bus string) []chromedp.ExecAllocatorOption {
	return []chromedp.ExecAllocatorOption{
		chromedp.Flag("enable-features", "WebBluetooth"), // off by default on Linux
		chromedp.Env("DBUS_SYSTEM_BUS_ADDRESS="+bus, "DBUS_SESSION_BUS_ADDRESS="+bus),
	}
}

// Chooser selects devices in the lists that Chromium shows.
type Chooser struct {
	t       *testing.T
	tab     context.Context
	prompts chan *deviceaccess.EventDeviceRequestPrompted
	done    map[deviceaccess.RequestID]bool
}

// NewChooser returns a Chooser for the lists that the pages of a tab request.
func NewChooser(tab context.Context, t *testing.T) *Chooser {
	t.Helper()
	c := &Chooser{t: t, tab: tab, done: map[deviceaccess.RequestID]bool{},
		prompts: make(chan *deviceaccess.EventDeviceRequestPrompted, 1000)}
	if err := chromedp.Listen(tab, func(ev any) {
		if p, ok := ev.(*deviceaccess.EventDeviceRequestPrompted); ok {
			c.prompts <- p
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(tab, deviceaccess.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// Pick chooses a device by name in the next list, and returns the names that were in the list. Chromium reports a
// list again whenever a device appears, and crashes if a list is answered twice.
func (c *Chooser) Pick(name string) (listed []string) {
	c.t.Helper()
	p, i := c.await(func(p *deviceaccess.EventDeviceRequestPrompted) int {
		return slices.IndexFunc(p.Devices, func(d *deviceaccess.PromptDevice) bool { return d.Name == name })
	})
	if _, err := chromedp.Call(c.tab, deviceaccess.SelectPrompt,
		deviceaccess.SelectPromptParams{ID: p.ID, DeviceID: p.Devices[i].ID}); err != nil {
		c.t.Fatal(err)
	}
	for _, d := range p.Devices {
		listed = append(listed, d.Name)
	}
	return listed
}

// Cancel closes the next list.
func (c *Chooser) Cancel() {
	c.t.Helper()
	p, _ := c.await(func(*deviceaccess.EventDeviceRequestPrompted) int { return 0 })
	if _, err := chromedp.Call(c.tab, deviceaccess.CancelPrompt,
		deviceaccess.CancelPromptParams{ID: p.ID}); err != nil {
		c.t.Fatal(err)
	}
}

// await waits for an unanswered list for which find does not return -1.
func (c *Chooser) await(find func(*deviceaccess.EventDeviceRequestPrompted) int) (
	*deviceaccess.EventDeviceRequestPrompted, int) {
	c.t.Helper()
	limit := time.After(StepLimit)
	for {
		select {
		case p := <-c.prompts:
			if i := find(p); i >= 0 && !c.done[p.ID] {
				c.done[p.ID] = true
				return p, i
			}
		case <-limit:
			c.t.Fatal("the browser showed no list with the device")
		}
	}
}
