"""Dev servers of a workspace: started on a bench, found again by a registry, ended with their whole tree."""
