package control

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/service-dev/service/daemon/internal/fontstore"
	"github.com/service-dev/service/glasses/render/fonts"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Fonts stores the fonts that the user added.
type Fonts interface {
	List() []fontstore.Font
	Add(ctx context.Context, data []byte) (fontstore.Font, error)
	Remove(ctx context.Context, name string) (fontstore.Font, error)
}

// ListFonts lists the fonts that the user added.
func (s *Server) ListFonts(context.Context, *controlv1.ListFontsRequest) (*controlv1.ListFontsResponse, error) {
	out := &controlv1.ListFontsResponse{}
	for _, f := range s.o.Fonts.List() {
		out.Fonts = append(out.Fonts, fontMessage(f))
	}
	return out, nil
}

// AddFont adds a font that the client streams in chunks.
func (s *Server) AddFont(stream grpc.ClientStreamingServer[controlv1.AddFontRequest, controlv1.AddFontResponse]) error {
	var data []byte
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if data = append(data, r.GetData()...); len(data) > fonts.MaxFile {
			break // Add rejects it as too large
		}
	}
	f, err := s.o.Fonts.Add(stream.Context(), data)
	if err != nil {
		return statusError(err)
	}
	return stream.SendAndClose(&controlv1.AddFontResponse{Font: fontMessage(f)})
}

// RemoveFont removes a font that was added.
func (s *Server) RemoveFont(ctx context.Context,
	r *controlv1.RemoveFontRequest) (*controlv1.RemoveFontResponse, error) {
	f, err := s.o.Fonts.Remove(ctx, r.GetName())
	if err != nil {
		return nil, statusError(err)
	}
	return &controlv1.RemoveFontResponse{Font: fontMessage(f)}, nil
}

func fontMessage(f fontstore.Font) *controlv1.Font {
	return &controlv1.Font{Name: f.Name, Sha256: f.SHA256, Weight: uint32(f.Weight), Italic: f.Italic, Bytes: f.Bytes,
		Problem: f.Problem}
}
