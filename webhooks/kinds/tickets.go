package kinds

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// tickets say which templates the API server has just accepted, so that the webhook that validates need not ask again
// what the webhook that defaults has asked a moment ago. Each is good for one request. Where the two requests go to two
// processes, or another webhook changes the template in between, there is no ticket, and the question is asked again.
type tickets struct {
	mu    sync.Mutex
	order []ticket
}

type ticket [sha256.Size]byte

// maxTickets bounds the memory: requests that never reach the validation leave their tickets behind.
const maxTickets = 256

func (t *tickets) issue(key ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) >= maxTickets {
		t.order = append(t.order[:0], t.order[1:]...)
	}
	t.order = append(t.order, key)
}

// redeem removes a ticket, and reports whether it existed.
func (t *tickets) redeem(key ticket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.order {
		if t.order[i] == key {
			t.order = append(t.order[:i], t.order[i+1:]...)
			return true
		}
	}
	return false
}

// ticketFor returns the ticket of a template with its claims.
func ticketFor(namespace string, template map[string]any, claims []string) (ticket, error) {
	data, err := json.Marshal([]any{namespace, template, claims})
	if err != nil {
		return ticket{}, err
	}
	return sha256.Sum256(data), nil
}
