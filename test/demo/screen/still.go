package screen

// Still passes frames on, and keeps the one that shows most of a rollout under way: for a picture that does not move.
type Still struct {
	// Next takes every frame.
	Next interface{ Draw(Frame) error }

	kept  Frame
	shows int
}

// Draw passes a frame on. Of the frames of a step that show equally much the last one is kept, and of steps the first.
func (s *Still) Draw(f Frame) error {
	shows := shown(f)
	if shows > s.shows || shows == s.shows && f.Step == s.kept.Step {
		s.kept, s.shows = f, shows
	}
	return s.Next.Draw(f)
}

// Frame returns the frame that was kept.
func (s *Still) Frame() Frame { return s.kept }

// shown counts the revisions and notes of a frame in which every workload is under way; of another frame it returns
// zero.
func shown(f Frame) int {
	n := 0
	for _, w := range f.Workloads {
		if w.Idle || w.Took > 0 {
			return 0
		}
		n += len(w.Revisions) + len(w.Notes)
	}
	return n
}
