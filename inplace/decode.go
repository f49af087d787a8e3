package inplace

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/pub"
)

// decodeState reads a state as json.Unmarshal does. A rollout of thousands of pods reads the states of all of them again
// and again, so the usual shape is read without reflection, and all else left to json.
func decodeState(text string) (*pub.InPlaceUpdateState, error) {
	if json.Valid([]byte(text)) {
		if s := new(pub.InPlaceUpdateState); usualState(text, s) {
			return s, nil
		}
	}
	s := new(pub.InPlaceUpdateState)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, err
	}
	return s, nil
}

// usualState is false for what is not of the usual shape. The text is valid JSON.
func usualState(text string, s *pub.InPlaceUpdateState) bool {
	if !strings.HasPrefix(text, "{") {
		return false
	}
	var seen uint8 // a bit for each key
	for m := open(text, '{'); m.next(); {
		var ok bool
		var bit uint8
		switch m.key {
		case "revision":
			bit = 1
			s.Revision, ok = plainString(m.value)
		case "updateTimestamp":
			bit, ok = 2, usualTime(m.value, &s.UpdateTimestamp)
		case "lastContainerStatuses":
			bit, ok = 4, usualStatuses(m.value, s)
		case "updateEnvFromMetadata":
			bit, ok = 8, m.value == "true"
			s.UpdateEnvFromMetadata = true
		case "updateResources":
			bit, ok = 16, m.value == "true"
			s.UpdateResources = true
		case "updateImages":
			bit, ok = 32, m.value == "true"
			s.UpdateImages = true
		case "containerBatchesRecord":
			bit, ok = 64, usualBatches(m.value, s)
		default: // a later batch, or a stranger's
		}
		if !ok || seen&bit != 0 {
			return false
		}
		seen |= bit
	}
	return true
}

func usualStatuses(text string, s *pub.InPlaceUpdateState) bool {
	if text == "null" {
		return true
	}
	if !strings.HasPrefix(text, "{") {
		return false
	}
	s.LastContainerStatuses = map[string]pub.InPlaceUpdateContainerStatus{}
	for m := open(text, '{'); m.next(); {
		var status pub.InPlaceUpdateContainerStatus
		if _, double := s.LastContainerStatuses[m.key]; double || m.odd || !usualStatus(m.value, &status) {
			return false
		}
		s.LastContainerStatuses[m.key] = status
	}
	return true
}

func usualStatus(text string, s *pub.InPlaceUpdateContainerStatus) bool {
	if !strings.HasPrefix(text, "{") {
		return false
	}
	for m := open(text, '{'); m.next(); {
		var ok bool
		switch m.key {
		case "imageID":
			s.ImageID, ok = plainString(m.value)
		case "containerID":
			s.ContainerID, ok = plainString(m.value)
		case "image":
			s.Image, ok = plainString(m.value)
		case "restartCount":
			n, err := strconv.ParseInt(m.value, 10, 32)
			s.RestartCount, ok = int32(n), err == nil
		default:
		}
		if !ok {
			return false
		}
	}
	return true
}

func usualBatches(text string, s *pub.InPlaceUpdateState) bool {
	if !strings.HasPrefix(text, "[") {
		return false
	}
	for m := open(text, '['); m.next(); {
		var batch pub.InPlaceUpdateContainerBatch
		if !strings.HasPrefix(m.value, "{") {
			return false
		}
		for f := open(m.value, '{'); f.next(); {
			switch {
			case f.key == "timestamp" && usualTime(f.value, &batch.Timestamp):
			case f.key == "containers" && batch.Containers == nil && usualNames(f.value, &batch.Containers):
			default:
				return false
			}
		}
		s.ContainerBatchesRecord = append(s.ContainerBatchesRecord, batch)
	}
	return s.ContainerBatchesRecord != nil
}

func usualNames(text string, names *[]string) bool {
	if !strings.HasPrefix(text, "[") {
		return false
	}
	*names = make([]string, 0, 4)
	for m := open(text, '['); m.next(); {
		name, ok := plainString(m.value)
		if !ok {
			return false
		}
		*names = append(*names, name)
	}
	return true
}

func usualTime(text string, t *metav1.Time) bool {
	s, ok := plainString(text)
	if !ok {
		return false
	}
	at, err := time.Parse(time.RFC3339, s)
	*t = metav1.NewTime(at.Local())
	return err == nil
}

// plainString is a string that is written as it is.
func plainString(text string) (string, bool) {
	if len(text) < 2 || text[0] != '"' || strings.IndexByte(text, '\\') >= 0 || !utf8.ValidString(text) {
		return "", false
	}
	return text[1 : len(text)-1], true
}

// members walks through the members of an object, or the elements of an array, in valid JSON.
type members struct {
	text       string
	at         int
	keyed      bool
	key, value string
	// odd is a key that is not written as it is.
	odd bool
}

func open(text string, bracket byte) members {
	return members{text: text, at: 1, keyed: bracket == '{'}
}

func (m *members) next() bool {
	m.at = blank(m.text, m.at)
	if m.at >= len(m.text) || m.text[m.at] == '}' || m.text[m.at] == ']' {
		return false
	}
	if m.text[m.at] == ',' {
		m.at = blank(m.text, m.at+1)
	}
	if m.keyed {
		end := valueEnd(m.text, m.at)
		key, ok := plainString(m.text[m.at:end])
		m.key, m.odd = key, !ok
		m.at = blank(m.text, end)
		m.at = blank(m.text, m.at+1) // the colon
	}
	end := valueEnd(m.text, m.at)
	m.value, m.at = m.text[m.at:end], end
	return true
}

func blank(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// valueEnd is where the value that begins at i ends.
func valueEnd(text string, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}
