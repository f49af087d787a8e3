package spread

// room is how many replicas a subset may get.
type room struct{ least, most int64 }

// byBounds meets all minima, and then fills the subsets up to their maxima, in their order.
func (p *division) byBounds() {
	rooms := make([]room, len(p.in.Subsets))
	for i := range p.in.Subsets {
		rooms[i] = p.bounds(&p.in.Subsets[i])
		if p.in.Mode == Adaptive {
			rooms[i] = rooms[i].adapted(&p.in.Subsets[i])
		}
	}
	if p.in.Mode == Reserving {
		p.reserving(rooms)
		return
	}
	left, numbers := p.total(), make([]int64, len(rooms))
	for i, r := range rooms {
		numbers[i] = min(r.least, left)
		left -= numbers[i]
	}
	for i, r := range rooms {
		more := min(max(r.most-r.least, 0), left)
		numbers[i] += more
		left -= more
	}
	p.store(numbers)
	p.noRoom(left)
}

// bounds reads the bounds of a subset.
func (p *division) bounds(s *Subset) room {
	r := room{0, unlimited}
	if a := p.read(s.Name, "minReplicas", s.MinReplicas); a != nil {
		r.least = a.of(p.total())
	}
	if a := p.read(s.Name, "maxReplicas", s.MaxReplicas); a != nil {
		r.most = a.of(p.total())
	}
	if r.least > r.most {
		p.blocked(NoteBoundsCrossed, s.Name, "minReplicas %s is above maxReplicas %s", s.MinReplicas, s.MaxReplicas)
		r.least = r.most
	}
	return r
}

// adapted keeps an unschedulable subset at what it can run, and ready replicas where they are.
func (r room) adapted(s *Subset) room {
	ready := int64(max(s.Ready, 0))
	switch {
	case s.Exists && s.Unschedulable:
		return room{max(ready, r.least), min(ready, r.most)} // ready replicas stay, also those above the maximum
	case ready > r.least:
		r.least = min(ready, r.most)
	}
	return r
}

func (p *division) store(numbers []int64) {
	for i, n := range numbers {
		p.result.Replicas[i] = int32(n)
	}
}

func (p *division) noRoom(left int64) {
	if left > 0 {
		p.result.Unallocated = int32(left)
		p.blocked(NoteNoRoom, "", "%d replicas are more than the subsets may have together", left)
	}
}

// placement divides replicas where some of the capacity is not expected to run pods.
type placement struct {
	left     int64
	numbers  []int64
	capacity []int64
}

// take raises a subset to a number of replicas, as far as replicas are left. Those beyond the capacity have
// substitutes: they are not taken from what is left.
func (t *placement) take(i int, to int64) {
	more := min(to-t.numbers[i], t.left)
	if more <= 0 {
		return
	}
	t.numbers[i] += more
	runs := min(more, max(t.capacity[i], 0))
	t.capacity[i] -= more
	t.left -= runs
}

// reserving divides where unschedulable subsets keep their replicas.
func (p *division) reserving(rooms []room) {
	t := &placement{left: p.total(), numbers: make([]int64, len(rooms)), capacity: make([]int64, len(rooms))}
	for i := range p.in.Subsets {
		s := &p.in.Subsets[i]
		t.capacity[i] = unlimited
		if s.Exists && (s.Unschedulable || s.Marked) {
			t.capacity[i] = int64(s.Current) - int64(s.Reserved)
		}
	}
	for i, r := range rooms {
		t.take(i, r.least)
	}
	for i, r := range rooms {
		if s := &p.in.Subsets[i]; s.Exists && s.Unschedulable {
			t.take(i, min(max(int64(s.Current), r.least), r.most))
		} else {
			t.take(i, r.most)
		}
	}
	p.store(t.numbers)
	p.noRoom(t.left)
}
