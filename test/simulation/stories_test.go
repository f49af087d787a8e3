package simulation

func set(says string, change func(*spec)) deed {
	return deed{says: says, do: func(w *world) { w.server.setSpec(change) }}
}

func (d deed) in(ticks int) deed {
	d.after = ticks
	return d
}

func wants(version string) deed {
	return set("wants "+version, func(s *spec) { s.Template = templateOf(version) })
}

// stories by the name of their file.
func stories() map[string]story {
	three := spec{Replicas: 3, Template: templateOf("v1"), MaxUnavailable: "1"}
	return map[string]story{
		"in-place": {
			shows: "A new image goes into the pods one by one. Each takes four writes: out of traffic, the change, back\ninto traffic, and the label of its state.",
			spec:  three, writes: 4,
			then: []deed{wants("v2")},
		},
	}
}
