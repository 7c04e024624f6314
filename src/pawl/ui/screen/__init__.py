"""What every interface that a person looks at is drawn with."""
