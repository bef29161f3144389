package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Upload is a decoded batch.
type Upload struct {
	Records  []Record
	Rejected int   // number of invalid events
	Dropped  int64 // as in Batch
}

// ErrTooMany is returned for a batch of more than MaxBatch events.
var ErrTooMany = fmt.Errorf("the batch contains more than %d events", MaxBatch)

// Decode decodes a Batch. An event whose content is not valid, or that contains a field twice, only counts as rejected.
// Any other mistake makes the batch invalid. The error is suitable for the sender and does not quote values.
func Decode(body []byte) (u Upload, err error) {
	d := decoder{body: body, Decoder: jsontext.NewDecoder(bytes.NewBuffer(body),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))} // record refuses both
	var hasEvents, hasDropped bool
	err = d.object("", func(name []byte) error {
		switch string(name) {
		case "events":
			if hasEvents {
				return errTwice("events")
			}
			hasEvents = true
			return d.events(&u)
		case "dropped":
			if hasDropped {
				return errTwice("dropped")
			}
			hasDropped = true
			u.Dropped, err = d.integer("dropped")
			return err
		}
		return errUnknown("", name)
	})
	if err != nil {
		return Upload{}, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return Upload{}, errNotJSON
	}
	switch {
	case u.Records == nil:
		return Upload{}, errors.New("the field events is missing")
	case u.Dropped < 0:
		return Upload{}, errors.New("the field dropped must not be below 0")
	}
	return u, nil
}

var errNotJSON = errors.New("the body is not JSON")

func errTwice(field string) error { return fmt.Errorf("the field %s occurs twice", field) }

func errType(field string) error {
	if field == "" {
		return errors.New("the body must be a JSON object")
	}
	return fmt.Errorf("the field %s has the wrong type", field)
}

func errUnknown(object string, name []byte) error {
	return fmt.Errorf("unknown field %s%s", object, shown(string(name)))
}

type decoder struct {
	*jsontext.Decoder
	body []byte
	// fields contains the fields of the current event. They are checked at its end, because its name may follow them.
	fields []rawField
}

// value reads a value, which is valid as long as the body.
func (d *decoder) value() ([]byte, error) {
	v, err := d.ReadValue()
	if err != nil {
		return nil, errNotJSON
	}
	end := int(d.InputOffset())
	return d.body[end-len(v) : end], nil
}

// object reads an object or null. f must read the value of each member. field is the object's name for errors.
func (d *decoder) object(field string, f func(name []byte) error) error {
	switch start, err := d.ReadToken(); {
	case err != nil:
		return errNotJSON
	case start.Kind() == 'n':
		return nil
	case start.Kind() != '{':
		return errType(field)
	}
	for d.PeekKind() == '"' {
		name, err := d.text(field, nil)
		if err != nil {
			return err
		}
		if err := f(name); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil { // the closing brace
		return errNotJSON
	}
	return nil
}

// usualEvent is the usual length of an event, in bytes.
const usualEvent = 240

// events reads a list of events or null.
func (d *decoder) events(u *Upload) error {
	switch start, err := d.ReadToken(); {
	case err != nil:
		return errNotJSON
	case start.Kind() == 'n':
		return nil
	case start.Kind() != '[':
		return errType("events")
	}
	u.Records = make([]Record, 0, min(MaxBatch, len(d.body)/usualEvent+1))
	for d.PeekKind() != ']' {
		if len(u.Records)+u.Rejected == MaxBatch {
			return ErrTooMany
		}
		e, err := d.event()
		if err != nil {
			return err
		}
		if r, err := e.record(); err != nil {
			u.Rejected++
		} else {
			u.Records = append(u.Records, r)
		}
	}
	if _, err := d.ReadToken(); err != nil { // the closing bracket
		return errNotJSON
	}
	return nil
}

// event reads an event and its fields. It reads null as an event without members.
func (d *decoder) event() (e rawEvent, err error) {
	d.fields = d.fields[:0]
	hasFields := false
	err = d.object("events", func(name []byte) (err error) {
		var into *[]byte
		switch string(name) {
		case "id":
			into = &e.id
		case "at":
			into = &e.at
		case "name":
			into = &e.name
		case "fields":
			if hasFields {
				return errTwice("events.fields")
			}
			hasFields = true
			return d.object("events.fields", d.field)
		default:
			return errUnknown("events.", name)
		}
		if *into != nil {
			return errTwice("events." + string(name))
		}
		*into, err = d.text("events.", name)
		return err
	})
	e.fields = d.fields
	return e, err
}

func (d *decoder) field(name []byte) error {
	value, err := d.value()
	d.fields = append(d.fields, rawField{name, value})
	return err
}

// text reads a string or null. The result is never nil.
func (d *decoder) text(object string, name []byte) ([]byte, error) {
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	s, ok := text(v)
	if !ok {
		return nil, errType(object + string(name))
	}
	return s, nil
}

// integer reads an integer or null.
func (d *decoder) integer(field string) (int64, error) {
	v, err := d.value()
	if err != nil || string(v) == "null" {
		return 0, err
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, errType(field)
	}
	return n, nil
}
