package mcpgate

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocolConn is the connection of one SDK session, which serves one protocol generation.
type protocolConn struct {
	stream  *stream
	in      chan jsonrpc.Message
	started bool // used only by the goroutine of stream.read

	end    sync.Once
	ended  chan struct{} // closed when the stream has ended; the session then reads EOF
	close  sync.Once
	closed chan struct{} // closed when the session has closed the connection
}

// Connect returns c, because a protocolConn is its own transport.
func (c *protocolConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// Read returns the next message from the client.
func (c *protocolConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.ended:
	case <-c.closed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, io.EOF
}

// Write sends a response, notification or request to the client.
func (c *protocolConn) Write(_ context.Context, m jsonrpc.Message) error {
	if response, ok := m.(*jsonrpc.Response); ok {
		return c.stream.answer(response)
	}
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() && !c.stream.ask(req.ID) {
		return io.ErrClosedPipe
	}
	return c.stream.write(data)
}

// Close closes the connection. The SDK calls it when its session ends.
func (c *protocolConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return nil
}

// SessionID returns "", because a stream has no session ID.
func (c *protocolConn) SessionID() string { return "" }

// sendEOF makes the session's next read return EOF.
func (c *protocolConn) sendEOF() { c.end.Do(func() { close(c.ended) }) }

// Indexes into stream.protocols.
const (
	protocolInitialize = iota
	protocolStateless
)

// firstStateless is the first protocol revision without initialize. Its requests contain the revision in _meta.
const (
	firstStateless = "2026-07-28"
	metaVersion    = "io.modelcontextprotocol/protocolVersion"
)

func belongs(m jsonrpc.Message, index int) bool {
	req, ok := m.(*jsonrpc.Request)
	switch {
	case !ok: // a response to a request from the server, which only sessions with initialize send
		return index == protocolInitialize
	case !req.IsCall():
		return index == protocolInitialize || req.Method == cancelled
	default:
		return index == protocolOf(req)
	}
}

func protocolOf(req *jsonrpc.Request) int {
	if !bytes.Contains(req.Params, []byte(metaVersion)) {
		return protocolInitialize
	}
	var p struct {
		Meta map[string]any `json:"_meta"`
	}
	if json.Unmarshal(req.Params, &p) != nil {
		return protocolInitialize
	}
	if version, _ := p.Meta[metaVersion].(string); version >= firstStateless {
		return protocolStateless
	}
	return protocolInitialize
}
