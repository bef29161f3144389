package web

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/glassestest/fakebluez"
)

// running is the Chromium of all tests, which use it one after another, because starting one takes longer than most
// tests. It runs until the test binary ends. bus is its D-Bus, which is empty if the machine has no dbus-daemon.
var running struct {
	once  sync.Once
	first context.Context
	bus   string
	err   error
}

// startChromium starts the browser unless it is running, and returns its first tab. It skips the test if Chromium is
// missing.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	chromium.Require(t)
	running.once.Do(func() {
		running.err = errors.New("the test that started chromium failed")
		running.first, running.err = launchChromium(t)
	})
	if running.err != nil {
		t.Fatal(running.err)
	}
	return running.first
}

func launchChromium(t *testing.T) (first context.Context, err error) {
	options := []chromedp.ExecAllocatorOption{chromedp.WindowSize(1280, 800),
		chromedp.Flag("use-fake-device-for-media-stream", true)}
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		first, _, err = chromium.Start(options...)
		return first, err
	}
	if running.bus, _, err = fakebluez.StartBus(); err != nil {
		return nil, err
	}
	// Chromium uses BlueZ only if it is running at the start. Later radios replace this one.
	radio := fakebluez.Start(t, fakebluez.Options{Bus: running.bus})
	defer radio.Vanish()
	if first, _, err = chromium.Start(append(options, chromium.BluetoothFlags(running.bus)...)...); err != nil {
		return nil, err
	}
	for end := time.Now().Add(chromium.StepLimit); radio.Calls("GetManagedObjects") == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return nil, errors.New("chromium does not use the radio")
		}
	}
	return first, nil
}

// newBrowser returns a tab in front of all others for a test. Cookies, permissions and cached files of earlier tests
// are removed first; the local storage of the page is removed at the end.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	if _, err := programFiles.ReadFile("wasm/" + programName + ".gz"); err != nil {
		missing(t, "the simulator's program (make wasm)")
	}
	tab, cancel := context.WithTimeout(startChromium(t), chromium.TestLimit)
	t.Cleanup(cancel)
	tab, _ = chromium.Tab(tab, t, chromedp.WithNewWindow(false))
	if err := chromium.Do(tab, chromedp.Func(forget)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // fails on a blank page
		_ = chromium.Do(tab, chromedp.Evaluate[chromedp.Void]("localStorage.clear()"))
	})
	return tab
}

// forget removes the data of earlier tests from the browser.
func forget(ctx context.Context, tab *chromedp.Target) error {
	_, err := cdp.Call(ctx, tab, network.ClearBrowserCookies, cdp.Empty{})
	if err == nil {
		_, err = cdp.Call(ctx, tab, network.ClearBrowserCache, cdp.Empty{})
	}
	if err == nil {
		_, err = cdp.Call(ctx, tab, browser.ResetPermissions, browser.ResetPermissionsParams{})
	}
	return err
}

// allow grants the pages of an origin permissions such as "camera" without asking.
func allow(tab context.Context, origin string, permissions ...string) error {
	for _, name := range permissions {
		_, err := chromedp.Call(tab, browser.SetPermission, browser.SetPermissionParams{
			Origin: origin, Permission: &browser.PermissionDescriptor{Name: name},
			Setting: browser.PermissionSettingGranted,
		})
		if err != nil {
			return fmt.Errorf("allow %s to use %s: %w", origin, name, err)
		}
	}
	return nil
}
