"""What an object's columns are: fields, their types, and what each type takes."""
