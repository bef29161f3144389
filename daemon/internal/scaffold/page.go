package scaffold

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
)

// fetchPage returns the connection page, or nil if it was not requested.
func fetchPage(ctx context.Context, page Page, project string) ([]byte, error) {
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

// page decides whether to write the connection page. It does not overwrite a page that was changed by hand or not
// generated. If the page is missing and not requested, it removes the page from the manifest.
func (p *project) page(ctx context.Context, html []byte, o Order) {
	name := path.Join(p.dir, PageName)
	old, err := p.files.Read(ctx, name, maxRead)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case html == nil:
		if gone && o.Page == nil {
			p.manifest.Page = nil
		}
	case gone, err == nil && (o.Force || bytes.Equal(old, html) || p.manifest.Page != nil &&
		sumOf(old) == p.manifest.Page.SHA256):
		p.html = html
	default:
		p.written = append(p.written, WrittenFile{name, "kept"})
	}
}
