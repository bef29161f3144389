package websocket

import (
	"crypto/sha1" //nolint:gosec // RFC 6455 prescribes it; nothing secret depends on it
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// AnyOrigin lets pages of every site connect, if it is the only pattern passed to Accept.
const AnyOrigin = "*"

// Accept upgrades a request (RFC 6455, section 4.2). A browser's Origin must name the host of the request or match one
// of origins. These are patterns of path.Match for a host, or for scheme://host if they contain "://". If Accept
// returns an error, it has sent the response. If it succeeds, neither rw nor r may be used afterwards.
func Accept(rw http.ResponseWriter, r *http.Request, origins ...string) (*Conn, error) {
	if status, err := checkHandshake(rw, r); err != nil {
		http.Error(rw, err.Error(), status)
		return nil, err
	}
	if err := checkOrigin(r, origins); err != nil {
		http.Error(rw, err.Error(), http.StatusForbidden)
		return nil, err
	}
	rw.Header().Set("Upgrade", "websocket")
	rw.Header().Set("Connection", "Upgrade")
	rw.Header().Set("Sec-WebSocket-Accept", acceptKey(r.Header.Get("Sec-WebSocket-Key")))
	rw.WriteHeader(http.StatusSwitchingProtocols)
	raw, buffered, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take the connection over: %w", err)
	}
	c := &Conn{raw: raw}
	if n := buffered.Reader.Buffered(); n > 0 { // data arrived in the same packet as the request
		c.ahead, _ = buffered.Peek(n) // at most 4 KB; stays valid until it is read
	}
	return c, nil
}

// Protocols returns the subprotocols that a request offers (RFC 6455, section 4.1). To select one, set
// Sec-WebSocket-Protocol in the response's header before Accept.
func Protocols(r *http.Request) (list []string) {
	for _, header := range r.Header.Values("Sec-WebSocket-Protocol") {
		for p := range strings.SplitSeq(header, ",") {
			list = append(list, strings.TrimSpace(p))
		}
	}
	return list
}

// acceptKey returns the response to the key of a handshake.
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(strings.TrimSpace(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // see above
	return base64.StdEncoding.EncodeToString(sum[:])
}

// checkHandshake returns the status and the reason for refusing a request.
func checkHandshake(rw http.ResponseWriter, r *http.Request) (status int, err error) {
	keys := r.Header.Values("Sec-WebSocket-Key")
	switch {
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, errors.New("a WebSocket begins with a GET request")
	case !r.ProtoAtLeast(1, 1), !hasToken(r.Header, "Connection", "upgrade"), !hasToken(r.Header, "Upgrade", "websocket"):
		rw.Header().Set("Connection", "Upgrade")
		rw.Header().Set("Upgrade", "websocket")
		return http.StatusUpgradeRequired, errors.New("this address is a WebSocket: send an HTTP/1.1 request with the " +
			"headers Connection: Upgrade and Upgrade: websocket")
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		rw.Header().Set("Sec-WebSocket-Version", "13")
		return http.StatusBadRequest, errors.New("only version 13 of the WebSocket protocol is supported")
	case len(keys) != 1:
		return http.StatusBadRequest, errors.New("the request must have one header Sec-WebSocket-Key")
	}
	if key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0])); err != nil || len(key) != 16 {
		return http.StatusBadRequest, errors.New("the header Sec-WebSocket-Key must be 16 bytes in Base64")
	}
	return 0, nil
}

// hasToken reports whether a header's comma-separated values include a token, ignoring case.
func hasToken(h http.Header, name, token string) bool {
	for _, value := range h.Values(name) {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// checkOrigin refuses a browser's request from a page of another site. Other clients send no Origin.
func checkOrigin(r *http.Request, allowed []string) error {
	origin := r.Header.Get("Origin")
	if origin == "" || len(allowed) == 1 && allowed[0] == AnyOrigin {
		return nil
	}
	from, err := url.Parse(origin)
	if err != nil || from.Host == "" {
		return errors.New("the header Origin is not the origin of a site")
	}
	if strings.EqualFold(from.Host, r.Host) {
		return nil
	}
	for _, pattern := range allowed {
		name := from.Host
		if strings.Contains(pattern, "://") {
			name = from.Scheme + "://" + from.Host
		}
		if ok, _ := path.Match(strings.ToLower(pattern), strings.ToLower(name)); ok {
			return nil
		}
	}
	return fmt.Errorf("pages of %s may not connect to %s", from.Host, r.Host)
}
