package analytics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// checkFilter returns an error if no event can match the filter's version or platform.
func checkFilter(f Slice) error {
	if len(f.Version) > maxVersion || !only(f.Version, versionMarks) {
		return fmt.Errorf("%w: no app version has this name", ErrInvalid)
	}
	if !slices.Contains(platforms, f.Platform) {
		return fmt.Errorf("%w: the platform must be ios, android, web or desktop", ErrInvalid)
	}
	return nil
}

// addSlices fills in the report's fields about versions and platforms. whole are the counters of the whole app in the
// range.
func (r *Report) addSlices(whole, bySlice []Counter, filter Slice) {
	versions, platforms, uses := map[string]int64{}, map[string]int64{}, map[string]VersionUse{}
	filteredVersions, filteredPlatforms := map[string]int64{}, map[string]int64{}
	for _, c := range bySlice {
		if c.Name == TotalSampled {
			continue
		}
		v, p := c.Slice.Version, c.Slice.Platform
		versions[v] += c.N
		platforms[p] += c.N
		if filter.Platform == "" || filter.Platform == p {
			use := uses[v]
			c.addTo(&use.Sessions, new(int64), &use.Errors)
			use.Version = v
			uses[v] = use
			filteredVersions[v] += c.N
		}
		if filter.Version == "" || filter.Version == v {
			filteredPlatforms[p] += c.N
		}
	}
	r.Versions, r.Platforms = namesOf(versions), namesOf(platforms)
	delete(uses, "")
	r.VersionUse = mostUsed(slices.Collect(maps.Values(uses)))
	if filter != (Slice{}) {
		r.ByVersion, r.ByPlatform = countsOf(filteredVersions), countsOf(filteredPlatforms)
	}
	named := map[Kind]int64{}
	for _, c := range whole {
		named[c.Kind] += c.N
	}
	r.Unsliced = named[KindVersion] > total(versions)-versions[""] || named[KindPlatform] > total(platforms)-platforms[""]
}

func total(counts map[string]int64) (n int64) {
	for _, one := range counts {
		n += one
	}
	return n
}

// countsOf returns the most frequent names with their counts.
func countsOf(counts map[string]int64) []Count {
	all := make([]Count, 0, len(counts))
	for name, n := range counts {
		if name != "" {
			all = append(all, Count{name, n})
		}
	}
	return mostFrequent(all)
}

// namesOf returns the most frequent names except Other, sorted. Numbers within names are compared by value.
func namesOf(counts map[string]int64) []string {
	names := []string{}
	for _, c := range countsOf(counts) {
		if c.Name != Other {
			names = append(names, c.Name)
		}
	}
	slices.SortFunc(names, compareVersions)
	return names
}

// mostUsed returns the most used versions, newest first, with Other last. It omits versions beyond maxNamed, because a
// combined rate of several versions is meaningless.
func mostUsed(uses []VersionUse) []VersionUse {
	slices.SortFunc(uses, func(a, b VersionUse) int {
		return cmp.Or(cmp.Compare(b.Sessions+b.Errors, a.Sessions+a.Errors), cmp.Compare(a.Version, b.Version))
	})
	uses = slices.DeleteFunc(uses, func(v VersionUse) bool { return v.Sessions+v.Errors == 0 })
	uses = uses[:min(len(uses), maxNamed)]
	slices.SortFunc(uses, func(a, b VersionUse) int {
		if (a.Version == Other) != (b.Version == Other) {
			return map[bool]int{true: 1, false: -1}[a.Version == Other]
		}
		return compareVersions(b.Version, a.Version)
	})
	return uses
}
