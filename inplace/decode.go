package inplace

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// decodeState reads a state as json.Unmarshal does. A rollout of thousands of pods reads the states of all of them
// again and again, so the usual shape is read in one go without reflection, and all else left to json.
func decodeState(text string) (*kruise.InPlaceUpdateState, error) {
	s := new(kruise.InPlaceUpdateState)
	if u := (usual{all: text}); u.state(s) && u.ended() {
		return s, nil
	}
	s = new(kruise.InPlaceUpdateState)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, err
	}
	return s, nil
}

// usual reads JSON of the shape that nearly every state has. Each method is false for what is not of that shape: an
// unknown key, a map or a list that is there twice, a string with an escape or beyond ASCII, a number that is no count,
// or no JSON.
type usual struct {
	all string
	at  int
}

func (u *usual) state(s *kruise.InPlaceUpdateState) bool {
	return u.object(func(key string) (ok bool) {
		switch key {
		case "revision":
			s.Revision, ok = u.text()
		case "updateTimestamp":
			s.UpdateTimestamp, ok = u.time()
		case "lastContainerStatuses":
			ok = s.LastContainerStatuses == nil && (u.word("null") || u.statuses(s))
		case "updateEnvFromMetadata":
			s.UpdateEnvFromMetadata, ok = true, u.word("true")
		case "updateResources":
			s.UpdateResources, ok = true, u.word("true")
		case "updateImages":
			s.UpdateImages, ok = true, u.word("true")
		case "containerBatchesRecord":
			ok = s.ContainerBatchesRecord == nil && u.batches(s) && s.ContainerBatchesRecord != nil
		default: // a later batch, or a stranger's
		}
		return ok
	})
}

func (u *usual) statuses(s *kruise.InPlaceUpdateState) bool {
	s.LastContainerStatuses = map[string]kruise.InPlaceUpdateContainerStatus{}
	return u.object(func(name string) bool {
		var status kruise.InPlaceUpdateContainerStatus
		if _, twice := s.LastContainerStatuses[name]; twice || !u.status(&status) {
			return false
		}
		s.LastContainerStatuses[name] = status
		return true
	})
}

func (u *usual) status(s *kruise.InPlaceUpdateContainerStatus) bool {
	return u.object(func(key string) (ok bool) {
		switch key {
		case "imageID":
			s.ImageID, ok = u.text()
		case "containerID":
			s.ContainerID, ok = u.text()
		case "image":
			s.Image, ok = u.text()
		case "restartCount":
			s.RestartCount, ok = u.count()
		default:
		}
		return ok
	})
}

func (u *usual) batches(s *kruise.InPlaceUpdateState) bool {
	return u.array(func() bool {
		var batch kruise.InPlaceUpdateContainerBatch
		ok := u.object(func(key string) (ok bool) {
			switch key {
			case "timestamp":
				batch.Timestamp, ok = u.time()
			case "containers":
				ok = batch.Containers == nil && u.names(&batch)
			default:
			}
			return ok
		})
		s.ContainerBatchesRecord = append(s.ContainerBatchesRecord, batch)
		return ok
	})
}

func (u *usual) names(batch *kruise.InPlaceUpdateContainerBatch) bool {
	batch.Containers = make([]string, 0, 4)
	return u.array(func() bool {
		name, ok := u.text()
		batch.Containers = append(batch.Containers, name)
		return ok
	})
}

func (u *usual) time() (metav1.Time, bool) {
	text, ok := u.text()
	if !ok {
		return metav1.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	return metav1.NewTime(at.Local()), err == nil
}

// object reads an object; member reads the value of a key.
func (u *usual) object(member func(key string) bool) bool {
	if !u.sign('{') {
		return false
	}
	for end := u.sign('}'); !end; {
		key, ok := u.text()
		if !ok || !u.sign(':') || !member(key) {
			return false
		}
		if end = u.sign('}'); !end && !u.sign(',') {
			return false
		}
	}
	return true
}

// array reads an array; element reads one of its values.
func (u *usual) array(element func() bool) bool {
	if !u.sign('[') {
		return false
	}
	for end := u.sign(']'); !end; {
		if !element() {
			return false
		}
		if end = u.sign(']'); !end && !u.sign(',') {
			return false
		}
	}
	return true
}

// text reads a string that is written as it is.
func (u *usual) text() (string, bool) {
	if !u.sign('"') {
		return "", false
	}
	for i := u.at; i < len(u.all); i++ {
		switch c := u.all[i]; {
		case c == '"':
			text := u.all[u.at:i]
			u.at = i + 1
			return text, true
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			return "", false
		}
	}
	return "", false
}

// count reads a number without sign, fraction or exponent. What follows one that has these is no end of a value.
func (u *usual) count() (int32, bool) {
	u.skipBlanks()
	from := u.at
	for u.at < len(u.all) && u.all[u.at] >= '0' && u.all[u.at] <= '9' {
		u.at++
	}
	digits := u.all[from:u.at]
	n, err := strconv.ParseInt(digits, 10, 32)
	return int32(n), err == nil && (digits == "0" || digits[0] != '0')
}

// word reads a word, if it comes next.
func (u *usual) word(w string) bool {
	u.skipBlanks()
	if !strings.HasPrefix(u.all[u.at:], w) {
		return false
	}
	u.at += len(w)
	return true
}

// sign is word for a single one.
func (u *usual) sign(c byte) bool {
	u.skipBlanks()
	if u.at == len(u.all) || u.all[u.at] != c {
		return false
	}
	u.at++
	return true
}

func (u *usual) ended() bool {
	u.skipBlanks()
	return u.at == len(u.all)
}

func (u *usual) skipBlanks() {
	for ; u.at < len(u.all); u.at++ {
		switch u.all[u.at] {
		case ' ', '\t', '\n', '\r':
		default:
			return
		}
	}
}
