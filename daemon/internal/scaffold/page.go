package scaffold

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
)

// bring asks for the connection page. What cannot be one is an error.
func bring(ctx context.Context, page Page, project string) ([]byte, error) {
	if page == nil {
		return nil, nil
	}
	html, err := page(ctx, project)
	switch {
	case err != nil:
		return nil, err
	case len(html) == 0:
		return nil, errors.New("the page is empty")
	case len(html) > maxRead:
		return nil, errors.New("the page is longer than 1 MB")
	}
	return html, nil
}

// page decides what becomes of the connection page: it is written anew unless the one that is there was changed by hand,
// or is not from here. A page that is gone and not asked for is forgotten.
func (p *project) page(ctx context.Context, html []byte, o Order) {
	name := path.Join(p.dir, PageName)
	old, err := p.files.Read(ctx, name, maxRead)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case html == nil:
		if gone && o.Page == nil {
			p.manifest.Page = nil
		}
	case gone, err == nil && (o.Force || bytes.Equal(old, html) || p.manifest.Page != nil && sumOf(old) == p.manifest.Page.SHA256):
		p.html = html
	default:
		p.written = append(p.written, WrittenFile{name, "kept"})
	}
}
