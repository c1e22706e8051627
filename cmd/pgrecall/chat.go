package main

import (
	"github.com/pgrecall/pgrecall/recall"
	chat "github.com/pgrecall/pgrecall/recall/chat/remote"
)

// withChat adds what makes titles, where there is something.
func (s chatSettings) withChat(options []recall.Option) ([]recall.Option, error) {
	if s.ChatURL == "" {
		return options, nil
	}
	client, err := chat.NewOpenAI(s.chat())
	if err != nil {
		return nil, err
	}
	return append(options, recall.WithChat(client)), nil
}
