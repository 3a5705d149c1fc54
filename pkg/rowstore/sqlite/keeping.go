package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
)

// keeping opens connections that keep their prepared statements. Preparing a read costs more than
// running it, and the same few reads recur.
type keeping struct{ connector }

// keptStatements is the most statements that one connection keeps.
const keptStatements = 64

func (k keeping) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := k.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, ok := opened.(engineConn)
	if !ok {
		return nil, fmt.Errorf("row store: %T cannot prepare", opened)
	}
	return &keeper{engineConn: conn, kept: map[string]engineStmt{}}, nil
}

// engineConn and engineStmt are what database/sql needs of the engine. They hide that the engine
// can also run unprepared statements, so database/sql prepares each.
type (
	engineConn interface {
		driver.Conn
		driver.ConnPrepareContext
		driver.ConnBeginTx
		driver.SessionResetter
		driver.Validator
	}
	engineStmt interface {
		driver.Stmt
		driver.StmtQueryContext
		driver.StmtExecContext
	}
)

// keeper is a connection with its idle prepared statements. One goroutine at a time uses it.
type keeper struct {
	engineConn
	kept map[string]engineStmt
}

// PrepareContext implements driver.ConnPrepareContext.
func (k *keeper) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if statement, ok := k.kept[text]; ok {
		delete(k.kept, text)
		return &kept{statement, k, text}, nil
	}
	prepared, err := k.engineConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return &kept{prepared.(engineStmt), k, text}, nil
}

// Close implements driver.Conn. It closes the kept statements first.
func (k *keeper) Close() error {
	for _, statement := range k.kept {
		_ = statement.Close() // only the connection's error counts
	}
	return k.engineConn.Close()
}

// kept is a statement in use. Close gives it back to its keeper.
type kept struct {
	engineStmt
	to   *keeper
	text string
}

// Close implements driver.Stmt.
func (s *kept) Close() error {
	if _, another := s.to.kept[s.text]; another || len(s.to.kept) >= keptStatements {
		return s.engineStmt.Close()
	}
	s.to.kept[s.text] = s.engineStmt
	return nil
}
