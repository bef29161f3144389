package analytics

// bounds limits how many counters the events of one period can create.
type bounds struct {
	exists map[CounterKey]bool
	names  map[kindOfPeriod]int
	slices map[Period]map[Slice]bool
}

// kindOfPeriod identifies names that share one limit.
type kindOfPeriod struct {
	Period
	Kind   Kind
	Sliced bool
}

func (k CounterKey) kindOfPeriod() kindOfPeriod {
	return kindOfPeriod{k.Period, k.Kind, k.Slice != Slice{}}
}

// newBounds returns bounds for periods that already contain the counters known.
func newBounds(known []CounterKey) *bounds {
	b := &bounds{exists: make(map[CounterKey]bool, len(known)), names: map[kindOfPeriod]int{},
		slices: map[Period]map[Slice]bool{}}
	for _, key := range known {
		b.exists[key] = true
		b.names[key.kindOfPeriod()]++
		b.addSlice(key)
	}
	return b
}

func (b *bounds) addSlice(key CounterKey) {
	if key.Slice == (Slice{}) {
		return
	}
	if b.slices[key.Period] == nil {
		b.slices[key.Period] = map[Slice]bool{}
	}
	b.slices[key.Period][key.Slice] = true
}

// fit returns the key of the counter to use for key: key itself, or Other if the period is full.
func (b *bounds) fit(key CounterKey) CounterKey {
	if b.exists[key] {
		return key
	}
	key.Slice = b.slice(key)
	b.addSlice(key)
	if b.exists[key] || key.Kind == KindTotal || key.Name == Other {
		return key
	}
	most, kind := maxNames, key.kindOfPeriod()
	if kind.Sliced {
		most = maxSliceNames
	}
	if b.names[kind] >= most {
		key.Name = Other
		return key
	}
	b.names[kind]++
	b.exists[key] = true
	return key
}

// slice returns the slice that key is counted in. Once a period has maxSlices slices, further versions are counted as
// Other, separately for each platform.
func (b *bounds) slice(key CounterKey) Slice {
	slice, slices := key.Slice, b.slices[key.Period]
	if slice.Version != "" && !slices[slice] && len(slices) >= maxSlices {
		slice.Version = Other
	}
	return slice
}
