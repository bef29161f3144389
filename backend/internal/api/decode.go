package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/internal/problem"
)

// maxBody is the largest request body in bytes.
const maxBody = 64 << 10

// decode strictly reads a JSON object of at most limit bytes. It checks the content type, and refuses unknown fields,
// repeated fields and data after the object.
func (c *call) decode(limit int64, into any) error {
	data, err := readBody(c.w, c.Request, limit)
	if err != nil {
		return err
	}
	return decodeBytes(data, into)
}

// withBody decodes the body for the handler.
func withBody[T any](handle func(c *call, body T) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		var body T
		if err := c.decode(maxBody, &body); err != nil {
			return nil, err
		}
		return handle(c, body)
	}
}

// readBody reads a JSON body of at most limit bytes. It returns a *problem.Error on failure.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	data, err := httpjson.ReadBody(w, r, limit)
	switch {
	case errors.Is(err, httpjson.ErrTooLarge):
		return nil, problem.New(problem.CodeRequestTooLarge, fmt.Sprintf("the body is over %d KB", limit>>10),
			"Send a smaller one.")
	case errors.Is(err, httpjson.ErrNotJSON):
		return nil, notJSON
	case err != nil:
		return nil, invalidRequest("the body ended early", "Send it again.")
	}
	return data, nil
}

var notJSON = problem.New(problem.CodeUnsupportedMedia, "the body must be application/json",
	"Set Content-Type: application/json.")

// strict refuses unknown and repeated fields at any depth, and field names in another case. It replaces invalid
// UTF-8, because apps may send truncated text, and accepts base64 with line breaks.
var strict = json.JoinOptions(json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true),
	jsonv1.ParseBytesWithLooseRFC4648(true))

func decodeBytes(data []byte, into any) error {
	if err := json.Unmarshal(data, into, strict); err != nil {
		return invalidBody(reason(err))
	}
	return nil
}

func invalidBody(what string) *problem.Error {
	return invalidRequest(what, "Send one JSON object with the documented fields only.")
}

// reason describes an error of json.Unmarshal without quoting values.
func reason(err error) string {
	var wrong *json.SemanticError
	var malformed *jsontext.SyntacticError
	switch {
	case errors.As(err, &wrong) && errors.Is(err, json.ErrUnknownName):
		return "unknown field " + fieldAt(wrong.JSONPointer)
	case errors.As(err, &wrong) && wrong.JSONPointer == "":
		return "the body must be a JSON object"
	case errors.As(err, &wrong):
		return "the field " + fieldAt(wrong.JSONPointer) + " has the wrong type"
	case errors.As(err, &malformed) && errors.Is(err, jsontext.ErrDuplicateName):
		return "the field " + fieldAt(malformed.JSONPointer) + " occurs twice"
	}
	return "the body is not JSON"
}

// fieldAt returns the path of a field without the positions in lists.
func fieldAt(at jsontext.Pointer) string {
	var names []string
	for token := range at.Tokens() {
		if _, err := strconv.Atoi(token); err != nil {
			names = append(names, clip(token, 60))
		}
	}
	return strings.Join(names, ".")
}
