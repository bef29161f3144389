package client

import (
	"context"
	"errors"
	"io"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Font is a font that the user added.
type Font = controlv1.Font

// fontPiece is the maximum size of one message of a font's data, in bytes.
const fontPiece = 1 << 20

// Fonts lists the fonts that the user added.
func (c *Client) Fonts(ctx context.Context) ([]*Font, error) {
	r, err := c.api.ListFonts(ctx, &controlv1.ListFontsRequest{Caller: c.caller})
	return r.GetFonts(), refusal(err)
}

// AddFont adds the font in data, the content of a font file.
func (c *Client) AddFont(ctx context.Context, data []byte) (*Font, error) {
	stream, err := c.api.AddFont(ctx)
	if err != nil {
		return nil, refusal(err)
	}
	request := &controlv1.AddFontRequest{Caller: c.caller}
	for first := true; first || len(data) > 0; first = false {
		request.Data = data[:min(len(data), fontPiece)]
		data = data[len(request.Data):]
		if err := stream.Send(request); errors.Is(err, io.EOF) {
			break // the response contains the reason
		} else if err != nil {
			return nil, refusal(err)
		}
		request = &controlv1.AddFontRequest{}
	}
	r, err := stream.CloseAndRecv()
	return r.GetFont(), refusal(err)
}

// RemoveFont removes the font with this name, or the one whose SHA-256 begins with it.
func (c *Client) RemoveFont(ctx context.Context, name string) (*Font, error) {
	r, err := c.api.RemoveFont(ctx, &controlv1.RemoveFontRequest{Caller: c.caller, Name: name})
	return r.GetFont(), refusal(err)
}
