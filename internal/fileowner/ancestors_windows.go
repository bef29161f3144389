package fileowner

// CheckAncestors does nothing; see ancestorsMatter.
func CheckAncestors(string) error { return nil }
