package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxKeys bounds the rows of one message.
	maxKeys = 1000
	// silence is after how long a message without content shows that the connection lives.
	silence = 20 * time.Second
	// patience is how long a reader may take for a message, before its connection is closed.
	patience = 30 * time.Second
)

// stream sends the rows of a view, and then what changes.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		refuse(w, http.StatusServiceUnavailable, errors.New("too many pages are open: close one"))
		return
	}
	feeds, err := s.cluster.feeds(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	me := newReader()
	for _, f := range feeds {
		defer s.sources.open(f, me)()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	to := http.NewResponseController(w)
	quiet := false
	for {
		changes, more := me.take(maxKeys)
		if len(changes) > 0 || quiet {
			if err := s.send(w, to, changes); err != nil {
				return // the reader has left
			}
		}
		if more {
			continue
		}
		if quiet, err = s.pause(r, me); err != nil {
			return
		}
	}
}

// pause waits for changes, and not less than the interval. Quiet means that there were none for long.
func (s *server) pause(r *http.Request, me *reader) (quiet bool, err error) {
	select {
	case <-r.Context().Done():
		return false, r.Context().Err()
	case <-s.clock.After(s.interval):
	}
	select {
	case <-r.Context().Done():
		return false, r.Context().Err()
	case <-me.wake:
		return false, nil
	case <-s.clock.After(silence):
		return true, nil
	}
}

// send writes one message: a comment where nothing has changed.
func (s *server) send(w http.ResponseWriter, to *http.ResponseController, changes map[string]Change) error {
	if err := to.SetWriteDeadline(s.clock.Now().Add(patience)); err != nil {
		return err
	}
	message := &bytes.Buffer{}
	if len(changes) == 0 {
		message.WriteString(":\n\n")
	} else {
		data, err := json.Marshal(changes)
		if err != nil {
			return err
		}
		fmt.Fprintf(message, "data: %s\n\n", data)
	}
	if _, err := w.Write(message.Bytes()); err != nil {
		return err
	}
	return to.Flush()
}
