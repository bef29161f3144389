package apple

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/fxamacker/cbor/v2"
)

// decoder refuses everything that two parsers may read differently. The certificate's nonce covers only the
// authenticator data, so a second authData entry would otherwise go unnoticed.
var decoder = mustDecoder(cbor.DecOptions{
	DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
	FieldNameMatching: cbor.FieldNameMatchingCaseSensitive, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	MaxNestedLevels: 4, MaxArrayElements: 16, MaxMapPairs: 16,
})

func mustDecoder(o cbor.DecOptions) cbor.DecMode {
	m, err := o.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}

// decode decodes one item, and returns the bytes after it.
func decode(data []byte, into any) (rest []byte, err error) {
	rest, err = decoder.UnmarshalFirst(data, into)
	var (
		duplicate  *cbor.DupMapKeyError
		indefinite *cbor.IndefiniteLengthError
	)
	switch {
	case err == nil:
		return rest, nil
	case errors.As(err, &duplicate):
		return nil, DuplicateKey
	case errors.As(err, &indefinite):
		return nil, IndefiniteLength
	}
	return nil, Malformed
}

// decodeAll decodes one item that is nothing but data.
func decodeAll(data []byte, into any) error {
	if len(data) > MaxObject {
		return Malformed
	}
	rest, err := decode(data, into)
	if err == nil && len(rest) > 0 {
		return Malformed
	}
	return err
}

type attestation struct {
	Format    string `cbor:"fmt"`
	Statement struct {
		Chain   [][]byte `cbor:"x5c"`
		Receipt []byte   `cbor:"receipt"` // for Apple's fraud metric, which is not used
	} `cbor:"attStmt"`
	AuthData []byte `cbor:"authData"`
}

func parseAttestation(object []byte) (a attestation, err error) {
	if err := decodeAll(object, &a); err != nil {
		return a, err
	}
	if a.Format != "apple-appattest" {
		return a, Malformed
	}
	return a, nil
}

type assertion struct {
	Signature []byte `cbor:"signature"`
	AuthData  []byte `cbor:"authenticatorData"`
}

func parseAssertion(object []byte) (a assertion, err error) {
	err = decodeAll(object, &a)
	return a, err
}

// authData is decoded authenticator data. Only attestations have a key.
type authData struct {
	app        []byte // SHA-256 of the app's ID
	counter    uint32
	aaguid     string
	id, point  []byte
	extensions extensions
}

// hasKey is the flag of authenticator data with a key. Apple does not always set the flag of its extensions.
const (
	hasKey    = 0x40
	flagsByte = hashSize
)

func parseHeader(data []byte) (authData, error) {
	if len(data) < headerSize {
		return authData{}, Malformed
	}
	return authData{app: data[:hashSize], counter: binary.BigEndian.Uint32(data[flagsByte+1:])}, nil
}

func parseAuthData(data []byte) (authData, error) {
	d, err := parseHeader(data)
	if err != nil || len(data) < idStart || data[flagsByte]&hasKey == 0 {
		return d, Malformed
	}
	d.aaguid = string(data[aaguidStart : idStart-2])
	length := int(binary.BigEndian.Uint16(data[idStart-2:]))
	rest := data[idStart:]
	if length != hashSize || len(rest) < length {
		return d, Malformed
	}
	d.id, rest = rest[:length], rest[length:]
	var key struct {
		Type      int    `cbor:"1,keyasint"`
		Algorithm int    `cbor:"3,keyasint"`
		Curve     int    `cbor:"-1,keyasint"`
		X         []byte `cbor:"-2,keyasint"`
		Y         []byte `cbor:"-3,keyasint"`
	}
	if rest, err = decode(rest, &key); err != nil {
		return d, err
	}
	const ec2, es256, p256, size = 2, -7, 1, 32
	if key.Type != ec2 || key.Algorithm != es256 || key.Curve != p256 || len(key.X) != size || len(key.Y) != size {
		return d, Malformed
	}
	d.point = slices.Concat([]byte{4}, key.X, key.Y) // uncompressed
	if len(rest) > 0 {
		d.extensions, err = parseExtensions(rest)
	}
	return d, err
}

// extensions maps names to encoded values. iOS has written them since version 27.
type extensions map[string]cbor.RawMessage

func parseExtensions(data []byte) (e extensions, err error) {
	err = decodeAll(data, &e)
	return e, err
}

const categoryName = "apple_validation_category_01"

// distributed lists the categories of apps that Apple or an enterprise distributes: a part of the system, which Apple's
// published example uses, TestFlight, the App Store, and enterprises. Development is 3.
var distributed = []uint32{1, 2, 4, 5}

// check refuses an app that was not distributed, unless development is accepted. Earlier versions of iOS report no
// category.
func (e extensions) check(development bool) error {
	raw, ok := e[categoryName]
	if !ok {
		return nil
	}
	var value []byte
	if err := decodeAll(raw, &value); err != nil {
		return err
	}
	switch {
	case len(value) != 4:
		return Malformed
	case !development && !slices.Contains(distributed, binary.LittleEndian.Uint32(value)):
		return WrongCategory
	}
	return nil
}
