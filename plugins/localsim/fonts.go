package localsim

import (
	"context"
	"path/filepath"

	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/plugins/internal/attach"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// UseFonts replaces the fonts that the user added. Running sessions use them from the next frame on.
func (s *sim) UseFonts(_ context.Context, r *pluginv1.UseFontsRequest) (*pluginv1.UseFontsResponse, error) {
	list := make([]fonts.Added, 0, len(r.GetFonts()))
	for _, f := range r.GetFonts() {
		a := fonts.Added{Name: f.GetName(), SHA256: f.GetSha256(), Bold: f.GetBold(), File: string(f.GetFile())}
		if !filepath.IsAbs(a.File) || len(list) == fonts.MaxAdded {
			return nil, attach.Invalid("the path of a font is not absolute, or there are too many fonts")
		}
		list = append(list, a)
	}
	fonts.SetAdded(list, func(a fonts.Added, err error) {
		s.log.Warn("ignored an added font", "font", a.Name, "sha256", a.SHA256, "err", err)
	})
	return &pluginv1.UseFontsResponse{}, nil
}
