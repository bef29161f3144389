package pluginhost

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/glasses/render/fonts"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// UseFonts passes the fonts that the user added to the transport adapters. Running adapters use the fonts when UseFonts
// returns; the others get them when they start. Failures are only logged, because a stuck adapter is replaced and then
// starts with the new list.
func (h *Host) UseFonts(ctx context.Context, list []fonts.Added) {
	h.fontsMu.Lock()
	h.fonts = list
	h.fontsMu.Unlock()
	for _, a := range h.all() {
		if !a.isTransport() || !a.hasBegun() {
			continue
		}
		inst, done, err := a.get(ctx)
		if err == nil {
			err = h.sendFonts(ctx, inst)
			done()
		}
		if err != nil {
			h.opts.Log.Warn("failed to send the added fonts to an adapter", "adapter", a.name, "err", err)
		}
	}
}

// hasBegun reports whether the adapter is running or starting.
func (a *adapter) hasBegun() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status.State == Running || a.status.State == Starting
}

// sendFonts passes the list to an instance. It holds fontsMu throughout, so that concurrent calls end with the latest
// list.
func (h *Host) sendFonts(ctx context.Context, inst *instance) error {
	h.fontsMu.Lock()
	defer h.fontsMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request := &pluginv1.UseFontsRequest{}
	for _, f := range h.fonts {
		request.Fonts = append(request.Fonts, &pluginv1.AddedFont{Name: f.Name, Sha256: f.SHA256, Bold: f.Bold,
			File: []byte(f.File)})
	}
	_, err := inst.transport.UseFonts(ctx, request)
	if status.Code(err) == codes.Unimplemented {
		return nil // its glasses have their own fonts
	}
	return err
}
