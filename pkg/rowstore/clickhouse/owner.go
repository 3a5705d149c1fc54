package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Claim makes owner the database's owner unless it has another one already, and returns its owner.
// With take, owner replaces any other. The mark is the comment of a table without rows: a table can
// be created only once.
func (s *Store) Claim(ctx context.Context, owner string, take bool) (whose string, err error) {
	marked, err := s.owners(ctx)
	if err != nil {
		return "", err
	}
	var statements []string
	if len(marked) == 0 {
		statements = append(statements,
			`CREATE TABLE IF NOT EXISTS `+s.table("owner")+` (nothing UInt8) ENGINE = `+engine+
				`MergeTree ORDER BY nothing COMMENT `+text(owner))
	}
	if take {
		statements = append(statements,
			`ALTER TABLE `+s.table("owner")+` MODIFY COMMENT `+text(owner))
	}
	for _, statement := range statements {
		if err := s.exec(ctx, callTimeout, statement); err != nil {
			return "", fmt.Errorf("row store: claim: %w", err)
		}
	}
	if marked, err = s.owners(ctx); err != nil {
		return "", err
	}
	if len(marked) != 1 {
		return "", fmt.Errorf("row store: claim: %d tables", len(marked))
	}
	return marked[0], nil
}

// owners returns the owner of the database: one or none.
func (s *Store) owners(ctx context.Context) ([]string, error) {
	found, err := read(ctx, s,
		`SELECT comment FROM system.tables WHERE database = `+text(s.db)+` AND name = 'owner'`,
		func(rows driver.Rows) (comment string, err error) {
			err = rows.Scan(&comment)
			return comment, err
		})
	if err != nil {
		return nil, fmt.Errorf("row store: claim: %w", err)
	}
	return found, nil
}
