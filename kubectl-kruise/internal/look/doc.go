// Package look has the commands get, which lists all kinds of kruise with get all, and describe, which knows Rollouts.
package look
