package wire

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits and estimates of field sizes.
const (
	maxName     = 256 // bytes
	maxOutput   = 1_000_000_000
	maxTools    = 128
	perMessage  = 16   // tokens that a provider may add to a message, such as its role
	perRequest  = 64   // tokens that a provider may add to a request
	perTools    = 1024 // tokens that a provider may add to a request with tools; Anthropic adds up to 530
	textInBytes = MaxBody
)

// Request is a decoded request.
type Request struct {
	API    API
	Model  string // model ID as the app sent it
	Stream bool
	// WantsUsage is set if the app requested the chunk that contains a stream's usage.
	WantsUsage bool
	// Output is the requested maximum length of the answer in tokens, or 0 if there is none.
	Output int64
	Images int64

	size     int64  // bytes of the request as the app sent it
	allowed  int64  // maximum length of the answer in tokens, after Encode
	logprobs int64  // number of token probabilities in the answer
	body     []byte // an object without the members that Encode adds
	text     int64  // bytes of text
	messages int64
}

// Decode decodes the body of a request. It returns a *FieldError on failure.
func Decode(api API, body []byte) (*Request, error) {
	if err := checkText(body); err != nil {
		return nil, err
	}
	d := &decoder{out: make([]byte, 0, len(body)), taken: map[string]jsontext.Value{}}
	if err := schemas[api](d, "", bytes.TrimSpace(body)); err != nil {
		return nil, err
	}
	r := &Request{
		API: api, body: d.out, Images: int64(d.images), text: int64(len(d.out) - d.imageBytes),
		messages: int64(bytes.Count(d.out, []byte(`"role":`)) + bytes.Count(d.out, []byte(`"type":`))),
		Stream:   string(d.taken["stream"]) == "true",
		size:     int64(len(body)),
	}
	r.logprobs, _ = strconv.ParseInt(string(d.taken["top_logprobs"]), 10, 64)
	if string(d.taken["logprobs"]) == "true" {
		r.logprobs++
	}
	r.Model, _ = stringOf(d.taken["model"])
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if n, err := strconv.ParseInt(string(d.taken[name]), 10, 64); err == nil && (r.Output == 0 || n < r.Output) {
			r.Output = n
		}
	}
	if options := d.taken["stream_options"]; options != nil {
		r.WantsUsage = bytes.Contains(options, []byte("true"))
	}
	return r, nil
}

// InputBound returns an upper bound on the length of the input in tokens. In a byte-level vocabulary, every token is at
// least one byte. imageTokens is the bound for one image.
func (r *Request) InputBound(imageTokens int64) int64 {
	bound := r.text + perMessage*r.messages + perRequest + r.Images*imageTokens
	if bytes.Contains(r.body, []byte(`"tools":`)) {
		bound += perTools
	}
	return bound
}

// Limits on the size of an answer, in bytes, for a short request and a short answer. See room.
const (
	MaxAnswer = 8 << 20 // limit for an answer that is not streamed
	MaxEvent  = 1 << 20 // an event of a stream
)

// room returns the number of bytes by which an answer may exceed these limits. Providers of the responses interface
// repeat the instructions and tools of the request, perhaps with escapes of 6 bytes. They also repeat the whole text
// in the last event.
func (r *Request) room() int64 { return 6*r.size + 64*min(r.allowed, MaxTokens) }

// MaxAnswer returns the maximum size of an answer that is not streamed, in bytes. Call it after Encode.
func (r *Request) MaxAnswer() int64 { return MaxAnswer + r.room() }

// bytesPerLogprob is the usual size of one probability in an answer, in bytes.
const bytesPerLogprob = 128

// CheckSize returns a *FieldError if an answer of output tokens with its probabilities would exceed the limits.
func (r *Request) CheckSize(output int64) error {
	if r.logprobs == 0 || r.Stream || r.API != Chat { // other answers contain none, or only a few per event
		return nil
	}
	if most := MaxAnswer / (r.logprobs * bytesPerLogprob); output > most {
		return invalid("logprobs", "makes an answer of %d tokens too large: limit the answer to %d tokens", output, most)
	}
	return nil
}

// Drop releases the request's text. Encode and InputBound must not be called afterwards.
func (r *Request) Drop() { r.body = nil }

// InputEstimate returns the typical size of the request's input in tokens, for calls whose usage was never reported.
func (r *Request) InputEstimate(imageTokens int64) int64 { return (r.text+3)/4 + r.Images*imageTokens }

// Encode returns the body for a provider. model is the provider's name for the model. outputField is the name of the
// field that limits the length of the answer, and output is that length in tokens.
func (r *Request) Encode(model, outputField string, output int64) []byte {
	r.allowed = output
	out := append(make([]byte, 0, len(r.body)+len(model)+128), r.body[:len(r.body)-1]...)
	add := func(name, value string) {
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), name...), `":`...)
		out = append(out, value...)
	}
	quoted, _ := jsontext.AppendQuote(nil, model) // the catalogue allows only plain names
	add("model", string(quoted))
	add(outputField, strconv.FormatInt(output, 10))
	add("stream", strconv.FormatBool(r.Stream))
	switch {
	case r.API == Responses:
		add("store", "false")
	case r.API == Chat && r.Stream:
		add("stream_options", `{"include_usage":true}`)
	}
	return append(out, '}')
}

var outputFields = map[API]string{Chat: "max_completion_tokens", Responses: "max_output_tokens", Messages: "max_tokens"}

// OutputField returns the field that limits the length of the answer.
func (a API) OutputField() string { return outputFields[a] }
