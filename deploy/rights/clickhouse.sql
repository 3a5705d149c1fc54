-- Gives the user of each role its rights in the database `shoal`, and no more. The users are called as their roles, and
-- made before: CREATE USER fetcher IDENTIFIED BY '…'. What is granted need not be there yet: a node of the control plane
-- makes the database and its tables, by the rights of its user.
GRANT ALL ON shoal.* TO controlplane;
GRANT SELECT ON system.parts TO controlplane, ingest, apiserver;
GRANT SELECT ON system.processes TO controlplane;
GRANT SELECT ON system.tables TO controlplane, fetcher, ingest, billing, apiserver;
GRANT SHOW TABLES ON shoal.* TO fetcher, ingest, billing, apiserver;
GRANT SELECT ON shoal.migrations TO fetcher;
GRANT SELECT ON shoal.* TO ingest, billing, apiserver;
GRANT INSERT ON shoal.jobs TO ingest;
GRANT INSERT ON shoal.fences TO ingest;
GRANT INSERT ON shoal.intake TO ingest;
GRANT INSERT ON shoal.intakeweekly TO ingest;
GRANT INSERT ON shoal.sums TO ingest;
GRANT INSERT, ALTER DELETE ON shoal.charged TO ingest;
GRANT INSERT, ALTER DELETE ON shoal.rows TO ingest;
GRANT INSERT, ALTER DELETE ON shoal.weeks TO ingest;
GRANT ALTER MODIFY COMMENT ON shoal.weeks TO ingest;
GRANT INSERT, ALTER DELETE ON shoal.lists TO ingest;
GRANT ALTER DELETE ON shoal.chunks TO ingest;
GRANT INSERT ON shoal.linkstates TO ingest;
GRANT INSERT, ALTER DELETE ON shoal.lists TO apiserver;
GRANT INSERT, ALTER DELETE ON shoal.chunks TO apiserver;
GRANT INSERT ON shoal.sitemaps TO apiserver;
GRANT ALTER DELETE ON shoal.sitemaps TO ingest;
GRANT INSERT ON shoal.siteversions TO apiserver;
GRANT INSERT, ALTER DELETE ON shoal.sitelinks TO apiserver;
