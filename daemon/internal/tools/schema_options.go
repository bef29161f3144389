package tools

import "strings"

// option completes an inferred schema with details that its struct cannot express.
type option func(root *schema)

// on sets keywords of a property. A path such as "credentials.hint" leads through lists and values that may be null. on
// panics if the path contains an unknown property, because that is a programming error.
func on(path string, set ...func(*schema)) option {
	return func(s *schema) {
		for name := range strings.SplitSeq(path, ".") {
			if s = innermost(s).Properties.find(name); s == nil {
				panic("schema: there is no property " + path)
			}
		}
		for _, apply := range set {
			apply(s)
		}
	}
}

// onEach sets keywords of several properties.
func onEach(set func(*schema), paths ...string) option {
	return func(root *schema) {
		for _, path := range paths {
			on(path, set)(root)
		}
	}
}

// with combines options.
func with(options ...option) option {
	return func(root *schema) {
		for _, apply := range options {
			apply(root)
		}
	}
}

func (s *schema) addAll(list properties) {
	for _, one := range list {
		if s.Properties.find(one.name) == nil {
			s.Properties = append(s.Properties, one)
		}
	}
}

// required sets the required arguments of a call, or the properties that every successful answer has.
func required(names ...string) option {
	return func(root *schema) { mustHave(names...)(root) }
}

// innermost returns the schema of the value itself, inside lists, maps and null.
func innermost(s *schema) *schema {
	for {
		switch {
		case s.AnyOf != nil:
			s = s.AnyOf[0]
		case s.Items != nil:
			s = s.Items
		case s.Values != nil:
			s = s.Values
		default:
			return s
		}
	}
}

func says(text string) func(*schema) { return func(s *schema) { s.Description = text } }

func oneOf(words ...string) func(*schema) { return func(s *schema) { innermost(s).Enum = words } }

func format(name string) func(*schema) { return func(s *schema) { innermost(s).Format = name } }

func matches(pattern string) func(*schema) { return func(s *schema) { innermost(s).Pattern = pattern } }

func byDefault(value any) func(*schema) { return func(s *schema) { s.Default = value } }

func notNegative(s *schema) { innermost(s).Minimum = new(0) }

func notEmpty(s *schema) { s.MinLength = new(1) }

func upTo(n int) func(*schema) { return func(s *schema) { s.MaxLength = &n } }

// maxItems sets the maximum number of items to the limit of a connection page.
func maxItems(s *schema) { s.MaxItems = new(20) }

// mustHave sets the required properties of an object.
func mustHave(names ...string) func(*schema) {
	return func(s *schema) {
		s = innermost(s)
		for _, name := range names {
			if s.Properties.find(name) == nil {
				panic("schema: there is no property " + name)
			}
		}
		s.Required = names
	}
}

// closed forbids properties that are not declared.
func closed(s *schema) { s.Closed = true }

// listOfObjects sets the schema of a list that is decoded later.
func listOfObjects(s *schema) { *s = schema{Type: "array", Items: &schema{Type: "object"}} }

// opaque omits the properties of an object.
func opaque(s *schema) {
	inner := innermost(s)
	*inner = schema{Type: "object", Description: inner.Description}
}

// nullable marks values that may be null even though they are not pointers.
func nullable(s *schema) { *s = *orNull(new(*s)) }
