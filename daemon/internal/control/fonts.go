package control

import (
	"context"

	"github.com/service-dev/service/daemon/internal/fontstore"
	"github.com/service-dev/service/glasses/render/fonts"
	api "github.com/service-dev/service/proto/control"
)

const maxFont = fonts.MaxFile

func (s *Server) listFonts(context.Context, api.None) (api.Fonts, error) {
	list := []api.Font{}
	for _, f := range s.o.Fonts.List() {
		list = append(list, fontOf(f))
	}
	return api.Fonts{Fonts: list}, nil
}

// addFont adds the font whose file is data.
func (s *Server) addFont(ctx context.Context, data []byte) (api.FontAnswer, error) {
	f, err := s.o.Fonts.Add(ctx, data)
	return api.FontAnswer{Font: fontOf(f)}, err
}

// removeFont removes a font that the user added.
func (s *Server) removeFont(ctx context.Context, r api.NameRequest) (api.FontAnswer, error) {
	f, err := s.o.Fonts.Remove(ctx, r.Name)
	return api.FontAnswer{Font: fontOf(f)}, err
}

func fontOf(f fontstore.Font) api.Font {
	return api.Font{Name: f.Name, SHA256: f.SHA256, Weight: f.Weight, Italic: f.Italic, Bytes: f.Bytes,
		Problem: f.Problem}
}
