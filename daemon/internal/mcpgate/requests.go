package mcpgate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK responds to methods of capabilities that the server does not declare. Its errors quote the client and contain
// Go type names. This file therefore checks requests before the SDK receives them, and rewrites the SDK's errors before
// they are sent.

// MCP methods that this package uses.
const (
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodDiscover   = "server/discover"
	methodRead       = "resources/read"
)

// declared describes what the server offers: the methods of each protocol generation, the tools and the resources.
type declared struct {
	methods [2][]string // indexed like stream.protocols
	tools   []string
	pages   []string // URIs
}

func newDeclared(opts Options) *declared {
	d := &declared{}
	methods := []string{"tools/list", toolCall}
	for _, tool := range opts.Catalogue.List() {
		d.tools = append(d.tools, tool.Name)
	}
	for _, page := range opts.Pages {
		d.pages = append(d.pages, docsURI+page.ID)
	}
	if len(d.pages) > 0 {
		d.pages = append(d.pages, schemaURI)
		methods = append(methods, "resources/list", "resources/templates/list", methodRead)
	}
	d.methods[protocolInitialize] = append([]string{methodInitialize, methodPing}, methods...)
	d.methods[protocolStateless] = append([]string{methodDiscover, "subscriptions/listen"}, methods...)
	return d
}

// paramTypes lists the JSON types of params, identified by the first byte of a value.
var paramTypes = []struct {
	param string
	first byte
	name  string
}{
	{"_meta", '{', "an object"}, {"name", '"', "a string"}, {"uri", '"', "a string"}, {"cursor", '"', "a string"},
	{"protocolVersion", '"', "a string"}, {"capabilities", '{', "an object"}, {"clientInfo", '{', "an object"},
}

// requiredParams lists the parameters that each method requires.
var requiredParams = map[string][]string{
	toolCall: {"name"}, methodRead: {"uri"}, methodInitialize: {"protocolVersion", "capabilities", "clientInfo"},
}

// check returns the reason why the SDK must not receive a call, or nil. initialized reports whether the client has
// begun a session.
func (d *declared) check(req *jsonrpc.Request, initialized bool) *jsonrpc.Error {
	protocol := protocolOf(req)
	params, shaped := paramsOf(req)
	opens := initialized || req.Method == methodInitialize || req.Method == methodPing
	switch {
	case protocol == protocolInitialize && !opens && d.knows(req.Method):
		return unsupportedVersion(params)
	case !slices.Contains(d.methods[protocol], req.Method):
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
			Message: fmt.Sprintf("method not found: %q", bounded(req.Method, maxQuote))}
	case !shaped:
		return invalidParams(req.Method, "params must be an object")
	}
	if problem := checkParams(req.Method, params); problem != "" {
		return invalidParams(req.Method, problem)
	}
	switch req.Method {
	case toolCall:
		return d.checkTool(text(params["name"]))
	case methodRead:
		return d.checkPage(text(params["uri"]), protocol)
	}
	return nil
}

// paramsOf returns the members of a call's params. ok is false if params is not an object.
func paramsOf(req *jsonrpc.Request) (params map[string]json.RawMessage, ok bool) {
	if len(req.Params) == 0 {
		return nil, true
	}
	return params, json.Unmarshal(req.Params, &params) == nil
}

func invalidParams(method, problem string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: method + ": " + problem}
}

func (d *declared) knows(method string) bool {
	return slices.Contains(d.methods[protocolInitialize], method) || slices.Contains(d.methods[protocolStateless], method)
}

// unsupportedVersion returns the error for a call outside a session without a valid protocol revision.
func unsupportedVersion(params map[string]json.RawMessage) *jsonrpc.Error {
	version, _ := jsonField(params["_meta"], metaVersion)
	requested := text(version)
	if requested == "" {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: "params must contain _meta with " + metaVersion + ", because the client did not initialize"}
	}
	data, _ := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: mcp.SupportedProtocolVersions(),
		Requested: bounded(requested, maxQuote)})
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "unsupported protocol version", Data: data}
}

// checkParams returns the problem with the top level of a call's params, or "" if it is valid.
func checkParams(method string, params map[string]json.RawMessage) string {
	for _, name := range requiredParams[method] {
		if _, ok := params[name]; !ok {
			return name + " is missing"
		}
	}
	for _, typ := range paramTypes {
		if value := bytes.TrimSpace(params[typ.param]); len(value) > 0 && value[0] != typ.first {
			return typ.param + " is not " + typ.name
		}
	}
	return ""
}

func (d *declared) checkTool(name string) *jsonrpc.Error {
	if slices.Contains(d.tools, name) {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: fmt.Sprintf("unknown tool %q", bounded(name, maxQuote))}
}

// codeResourceNotFound is the code for a missing resource in the revisions with initialize. Later revisions use the
// code for invalid params instead.
const codeResourceNotFound = -32002

func (d *declared) checkPage(uri string, protocol int) *jsonrpc.Error {
	if slices.Contains(d.pages, uri) {
		return nil
	}
	data, _ := json.Marshal(map[string]string{"uri": bounded(uri, maxQuote)})
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "resource not found", Data: data}
	if protocol == protocolInitialize {
		e.Code = codeResourceNotFound
	}
	return e
}

// text returns the value of a JSON string, or "" for other values.
func text(value json.RawMessage) string {
	var s string
	_ = json.Unmarshal(value, &s)
	return s
}

// Limits on the client's text that an error quotes, and on an error as a whole, in bytes.
const (
	maxQuote     = 100
	maxErrorText = 400
	maxErrorData = 1000
)

// bounded shortens s to about n bytes.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// sdkDecodeError matches decoding errors of the SDK, which quote the input and contain Go type names.
var sdkDecodeError = regexp.MustCompile(`unmarshal|json: |mcp\.|\bGo (struct|value|type)\b`)

// clientError converts an error of the SDK to an error for clients: short, with a code and without Go type names.
func clientError(err error) error {
	if err == nil {
		return nil
	}
	// An error without a code means that the message was sent at the wrong time.
	out := jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	var coded *jsonrpc.Error
	if errors.As(err, &coded) {
		out.Data = coded.Data
		if coded.Code != 0 {
			out.Code = coded.Code
		}
	}
	if sdkDecodeError.MatchString(out.Message) {
		out.Code, out.Message = jsonrpc.CodeInvalidParams, "params do not match the types in the method's schema"
	}
	out.Message = bounded(out.Message, maxErrorText)
	if len(out.Data) > maxErrorData {
		out.Data = nil
	}
	return &out
}

// listTTL is how long a client may cache the lists of tools and resources. They change only with the program, which may
// be upgraded while a client is running.
const listTTL = 5 * 60 * 1000 // ms

func cacheable(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs = listTTL }
