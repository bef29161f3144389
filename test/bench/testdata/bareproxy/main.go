// Command bareproxy is the baseline of the gateway: the standard library's reverse proxy, which adds up the usage in
// the responses. Its argument is the provider's URL. It prints its address.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync/atomic"
)

// scan reads a response while the proxy forwards it.
type scan struct {
	io.ReadCloser
	rest []byte
	sum  *atomic.Int64
}

func (s *scan) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.rest = append(s.rest, p[:n]...)
	for {
		line, rest, found := bytes.Cut(s.rest, []byte("\n"))
		if !found {
			break
		}
		s.rest = rest
		if !bytes.Contains(line, []byte(`"usage":{`)) {
			continue
		}
		var event struct {
			Usage struct {
				Total int64 `json:"total_tokens"`
			}
		}
		if json.Unmarshal(bytes.TrimPrefix(line, []byte("data: ")), &event) == nil {
			s.sum.Add(event.Usage.Total)
		}
	}
	return n, err
}

func main() {
	provider, err := url.Parse(os.Args[1])
	if err != nil {
		panic(err)
	}
	var sum atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(provider) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		ModifyResponse: func(r *http.Response) error {
			r.Body = &scan{ReadCloser: r.Body, sum: &sum}
			return nil
		},
	}
	fmt.Println(httptest.NewServer(proxy).URL)
	io.Copy(io.Discard, os.Stdin) // the benchmark closes standard input when it is done
}
