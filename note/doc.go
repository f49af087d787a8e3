// Package note holds the reasons that plans give for what they do and for what they leave.
//
// Every plan of this module explains itself with a list of notes. A controller turns them into events, conditions and
// logs in one place; a test compares them with a golden story.
//
//	result, err := scale.Plan(input)
//	...
//	for _, n := range result.Notes {
//		log.Info("Planned", "code", n.Code, "object", n.Object, "reason", n.Text)
//	}
//	if headline, ok := note.Headline(result.Notes); ok {
//		conditions = append(conditions, note.ToCondition("Stalled", headline, generation, now))
//	}
//
// Laws:
//   - Headline does not depend on the order of the notes.
//   - Headline returns a note of the highest level that any note has.
//
// When not to use it: for errors. A plan that cannot be made returns an error.
package note
