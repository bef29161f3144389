package web

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/color/palette"
	"image/png"
	"net/http"
	"net/url"

	"golang.org/x/image/draw"

	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// drawingBounds limits how many panels are drawn at the same time, to leave processors for the sessions themselves.
// Further requests wait.
var drawingBounds = limit.Bounds{Running: 2, RunningEach: 1, Waiting: 1000, WaitingEach: 100}

// sessionPanel sends a small picture of the current panel of an open session.
func (w *Web) sessionPanel(c *call) error { return w.sendPanel(c, thumbnail) }

// simulatorPanel sends the exact picture of the panel.
func (w *Web) simulatorPanel(c *call) error {
	return w.sendPanel(c, func(_ context.Context, picture []byte) []byte { return picture })
}

func (w *Web) sendPanel(c *call, fit func(ctx context.Context, picture []byte) []byte) error {
	picture, err := w.panel(c, fit)
	switch {
	case errors.Is(err, limit.ErrFull):
		return w.showBusy(c)
	case c.Context().Err() != nil:
		return nil // the browser has disconnected
	case err != nil:
		return err
	}
	c.rw.Header().Set("Content-Type", pngType)
	c.rw.WriteHeader(http.StatusOK)
	_, _ = c.rw.Write(picture) // the browser may have disconnected
	return nil
}

// panel draws the panel of the session in the path, once it is the account's turn. It stops early if the browser has
// disconnected.
func (w *Web) panel(c *call, fit func(ctx context.Context, picture []byte) []byte) ([]byte, error) {
	ctx := c.Context()
	leave, err := w.drawings.Enter(ctx, c.account.ID)
	if err != nil {
		return nil, err
	}
	defer leave()
	s, m, err := w.Dashboard.Sessions.Shown(ctx, c.account.ID, c.PathValue("session"))
	if err != nil {
		return nil, err
	}
	picture := drawPanel(ctx, s.DeviceModel, m)
	if picture == nil {
		return nil, errNotFound
	}
	return fit(ctx, picture), nil
}

// panelURL returns the URL of a picture of an open session's panel, which the simulator page shows until its own
// program runs. It returns "" if the panel is empty.
func (w *Web) panelURL(c *call, id string) (string, error) {
	if w.Dashboard == nil {
		return "", nil
	}
	s, m, err := w.Dashboard.Sessions.Shown(c.Context(), c.account.ID, id)
	if errors.Is(err, sessions.ErrClosed) {
		return "", nil
	}
	if model, _ := glasses.Model(s.DeviceModel); err != nil || model.Panel == nil ||
		m.Display.Type != glasses.TypeDisplayShow {
		return "", err
	}
	return "/s/" + url.PathEscape(id) + "/panel", nil
}

// maxThumbnail is the size in bytes above which a picture is reduced to half its width, and then to a quarter, with the
// colours of a palette. A page shows many pictures, each about 160 pixels high.
const maxThumbnail = 5_000

// thumbnail compresses the picture of a panel well. Pictures with many colours, such as photos, are also reduced.
func thumbnail(ctx context.Context, picture []byte) []byte {
	img, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return picture
	}
	best := picture
	if _, ok := img.(*image.Paletted); ok { // other pictures take long to compress, and stay large
		best = compress(img)
	}
	for part := 2; part <= 4 && len(best) > maxThumbnail && ctx.Err() == nil; part *= 2 {
		size := image.Rect(0, 0, img.Bounds().Dx()/part, img.Bounds().Dy()/part)
		small := image.NewRGBA(size)
		draw.ApproxBiLinear.Scale(small, size, img, img.Bounds(), draw.Src, nil)
		best = compress(withPalette(small))
	}
	return best
}

// withPalette returns an opaque picture with the nearest colours of a palette. It searches only once for colours that
// differ little, because a search is slow.
func withPalette(img *image.RGBA) *image.Paletted {
	out := image.NewPaletted(img.Rect, palette.Plan9)
	known := map[color.RGBA]uint8{}
	for i := range out.Pix {
		p := img.Pix[i*4:]
		c := color.RGBA{p[0] &^ 7, p[1] &^ 7, p[2] &^ 7, 0xff}
		at, ok := known[c]
		if !ok {
			at = uint8(out.Palette.Index(c)) // #nosec G115 -- the palette has 256 colours
			known[c] = at
		}
		out.Pix[i] = at
	}
	return out
}

func compress(img image.Image) []byte {
	var out bytes.Buffer
	_ = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, img) // a buffer never fails
	return out.Bytes()
}

// drawPanel draws the panel of a session: the last tree, or a clear panel while the glasses are folded or not worn. It
// returns nil for a model without a panel, and once ctx has ended.
func drawPanel(ctx context.Context, modelID string, m sessions.Memory) []byte {
	model, ok := glasses.Model(modelID)
	if !ok || model.Panel == nil {
		return nil
	}
	view := glasses.View{Focus: -1}
	if m.Display.Type == glasses.TypeDisplayShow {
		if show, err := glasses.ParseShow(m.Display.Payload); err == nil {
			view = render.Show(model, view, &show.Tree)
		}
	}
	if m.State != nil {
		view = m.State.Glasses.Seen(view)
	}
	drawn := render.Draw(model, view)
	if ctx.Err() != nil {
		return nil
	}
	return render.PNG(drawn)
}
