package chromium

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/deviceaccess"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// OpenBluetooth is Open for a Chromium that uses Web Bluetooth over the D-Bus at this address.
func OpenBluetooth(t *testing.T, bus string, flags ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	opts := BluetoothFlags(bus)
	for _, flag := range []string{ // with these, a hidden tab would not be slowed down as a person's is
		"disable-background-timer-throttling", "disable-backgrounding-occluded-windows", "disable-renderer-backgrounding",
	} {
		opts = append(opts, chromedp.Flag(flag, false))
	}
	return Open(t, append(opts, flags...)...)
}

// BluetoothFlags are the options of a Chromium that reaches Bluetooth over the D-Bus at this address.
func BluetoothFlags(bus string) []chromedp.ExecAllocatorOption {
	return []chromedp.ExecAllocatorOption{
		chromedp.Flag("enable-features", "WebBluetooth"), // off by default on Linux
		chromedp.Env("DBUS_SYSTEM_BUS_ADDRESS="+bus, "DBUS_SESSION_BUS_ADDRESS="+bus),
	}
}

// Chooser answers the lists of devices that Chromium shows.
type Chooser struct {
	t       *testing.T
	tab     context.Context
	prompts chan *deviceaccess.EventDeviceRequestPrompted
	done    map[deviceaccess.RequestID]bool
}

// NewChooser answers the lists that pages of a tab ask for.
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

// Press activates a button with the keyboard: a click would miss a button that the page moves at the same moment.
func Press(button string) chromedp.Action[chromedp.Void] { return chromedp.SendKeys(button, kb.Enter) }

// Pick chooses a device by name in the next list, and returns the names that were in the list. Chromium announces a
// list again whenever a device appears, and crashes if one is answered twice.
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

// await waits for a list that was not answered and in which find does not return -1.
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
